# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stop in the middle of a write: whether the node took it is known afterwards, and no other write begins."""

from __future__ import annotations

import asyncio

import pytest

from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._node import writes


@pytest.mark.parametrize(("answer", "accepted"), [("OK", True), (TalosError("NodeRefused", "No."), False)])
def test_a_cancelled_task_ends_when_the_node_has_answered(answer: str | TalosError, accepted: bool) -> None:
    async def stopped() -> bool:
        all_of_them, sent, told = writes.Writes(), asyncio.Event(), asyncio.Event()

        async def sending() -> str:
            sent.set()
            await told.wait()
            if isinstance(answer, TalosError):
                raise answer
            return answer

        task = asyncio.ensure_future(all_of_them.whole(sending()))
        await sent.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        told.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return all_of_them.accepted

    assert asyncio.run(stopped()) is accepted


def test_a_node_that_never_answers_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "PATIENCE", 0.001)

    async def stopped() -> bool:
        all_of_them, sent, given_up = writes.Writes(), asyncio.Event(), asyncio.Event()

        async def sending() -> None:
            sent.set()
            try:
                await asyncio.Event().wait()
            finally:
                given_up.set()

        task = asyncio.ensure_future(all_of_them.whole(sending()))
        await sent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await given_up.wait()
        return all_of_them.accepted

    assert not asyncio.run(stopped())


def test_after_the_end_no_write_begins() -> None:
    begun = []

    async def sending() -> None:
        begun.append(True)

    async def late() -> None:
        all_of_them = writes.Writes()
        await all_of_them.whole(sending())
        all_of_them.end()
        await all_of_them.whole(sending())

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(late())
    assert begun == [True]
