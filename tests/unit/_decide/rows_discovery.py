# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Section 6 of the design as rows."""

from __future__ import annotations

from ansible_collections.ichor.talos.plugins.module_utils._decide.discovery_words import Discovery, KubernetesHost
from ansible_collections.ichor.talos.plugins.module_utils._model.addresses import parse_endpoint
from ansible_collections.ichor.talos.plugins.module_utils._model.identity import swapped_uuid
from ansible_collections.ichor.talos.plugins.module_utils._model.moments import moment
from ansible_collections.ichor.talos.plugins.module_utils._model.observations import Link
from ansible_collections.ichor.talos.plugins.module_utils._model.records import Broken

from tests.unit._decide.looks_discovery import (
    CONVERGED,
    FULL,
    PLACEHOLDER,
    SENT,
    answer,
    configured,
    created,
    equal,
    first_words,
    found,
    links_of,
    names_of,
    probed,
    silent,
    told_before,
    verified,
    weak_of,
)
from tests.unit._decide.rows import Row
from tests.unit.machine_world import NOW, fingerprint, identity, mac_of, machine, uuid_of

DISCOVERY: tuple[Row, ...] = (
    # what an address answers
    Row("6/silent", lambda: found(silent("10.0.0.1")), actions=()),
    Row(
        "6/configured-creates-nothing",
        lambda: found(configured("10.0.0.1")),
        ("6/already-configured",),
        events=("AlreadyConfigured",),
        says=("add_machine", "reclaim", "nothing is created"),
    ),
    Row(
        "6/configured-once",
        lambda: found(configured("10.0.0.1"), events=[told_before("10.0.0.1", first_words(configured("10.0.0.1")), 300)]),
        ("6/already-configured",),
        events=(),
    ),
    Row(
        "6/configured-again-after-change",
        lambda: found(configured("10.0.0.1", "cp-2"), events=[told_before("10.0.0.1", first_words(configured("10.0.0.1")), 300)]),
        ("6/already-configured",),
        events=("AlreadyConfigured",),
    ),
    Row(
        "6/configured-again-after-maintenance",
        lambda: found(
            configured("10.0.0.1"),
            machines=[machine(1, status={"maintenanceFingerprintAt": moment(NOW - 60)})],
            events=[told_before("10.0.0.1", first_words(configured("10.0.0.1")), 300)],
        ),
        ("6/already-configured",),
        events=("AlreadyConfigured",),
    ),
    Row("6/configured-own-is-no-news", lambda: found(configured("10.0.0.1"), machines=[machine(1, "approved", status=SENT)]), ("6/configured-own",)),
    # identity
    Row("6/new-is-pending-and-pinned", lambda: found(answer("10.0.0.1", 1)), ("6/new",), actions=("CreateMachine",), says=(fingerprint("one"),)),
    Row("6/equal-means-all-three", lambda: equal(identity(1), identity(1)), actions=("equal",)),
    Row("6/other-serial-is-another", lambda: equal(identity(1), identity(1, serial="X-77"))),
    Row("6/other-macs-are-another", lambda: equal(identity(1), identity(1, macs=(mac_of(9),)))),
    Row("6/other-uuid-is-another", lambda: equal(identity(1), identity(1, uuid=uuid_of(9)))),
    Row("6/upper-case-uuid-is-equal", lambda: equal(identity(1), identity(1, uuid=uuid_of(1).upper())), actions=("equal",)),
    Row("6/no-uuid-equals-nobody", lambda: equal(identity(1, uuid=""), identity(1, uuid=""))),
    Row("6/placeholder-serial-is-absent", lambda: equal(identity(1, serial="Default string"), identity(1, serial="")), actions=("equal",)),
    Row(
        "6/placeholder-serials-are-equal",
        lambda: equal(identity(1, serial="To be filled by O.E.M."), identity(1, serial="System Serial Number")),
        actions=("equal",),
    ),
    Row("6/repeated-character-serial-is-absent", lambda: equal(identity(1, serial="00000000"), identity(1, serial="None")), actions=("equal",)),
    Row("6/counted-serial-is-absent", lambda: equal(identity(1, serial="0123456789"), identity(1, serial="xxxxxxx")), actions=("equal",)),
    Row("6/real-serial-counts", lambda: equal(identity(1, serial="0123456780-A"), identity(1, serial="")), actions=()),
    Row("6/mac-physical", lambda: links_of(Link("eth0", mac_of(1), mac_of(1), True)), actions=(mac_of(1),)),
    Row("6/mac-permanent-not-current", lambda: links_of(Link("eth0", mac_of(1), mac_of(2), True)), actions=(mac_of(1),)),
    Row("6/mac-not-virtual", lambda: links_of(Link("bond0", mac_of(1), mac_of(1), False), Link("eth0.5", mac_of(2), mac_of(2), False))),
    Row("6/mac-not-local", lambda: links_of(Link("eth0", "02:00:00:00:00:01", "02:00:00:00:00:01", True))),
    Row(
        "6/mac-not-usb",
        lambda: links_of(Link("usb0", mac_of(1), mac_of(1), True, driver="cdc_ether"), Link("eth9", mac_of(2), mac_of(2), True, bus_path="usb-0000:00:14.0-3")),
    ),
    # weak identities
    Row("6/weak-empty", lambda: found(answer("10.0.0.1", identity(1, uuid=""))), ("6/weak-uuid-empty",), actions=("CreateMachine",)),
    Row(
        "6/weak-zeros",
        lambda: found(answer("10.0.0.1", identity(1, uuid="00000000-0000-0000-0000-000000000000"))),
        ("6/weak-uuid-placeholder",),
        actions=("CreateMachine",),
    ),
    Row(
        "6/weak-ones",
        lambda: found(answer("10.0.0.1", identity(1, uuid="ffffffff-ffff-ffff-ffff-ffffffffffff"))),
        ("6/weak-uuid-placeholder",),
        actions=("CreateMachine",),
    ),
    Row("6/weak-vendor-default", lambda: found(answer("10.0.0.1", identity(1, uuid=PLACEHOLDER))), ("6/weak-uuid-placeholder",), actions=("CreateMachine",)),
    Row(
        "6/weak-live",
        lambda: found(answer("10.0.0.1", 1), answer("10.0.0.2", identity(2, uuid=uuid_of(1)), "two")),
        ("6/weak-uuid-live",),
        actions=("CreateMachine", "CreateMachine"),
    ),
    Row(
        "6/weak-recorded-other-serial",
        lambda: found(answer("10.0.0.2", identity(1, serial="OTHER-1"), "two"), machines=[machine(1)]),
        ("6/weak-uuid-recorded",),
        actions=("CreateMachine",),
    ),
    Row(
        "6/weak-recorded-other-macs",
        lambda: found(answer("10.0.0.2", identity(1, macs=(mac_of(9),)), "two"), machines=[machine(1)]),
        ("6/weak-uuid-recorded",),
        actions=("CreateMachine",),
    ),
    Row(
        "6/weak-first-keeps-its-record",
        lambda: found(answer("10.0.0.1", 1, "new"), answer("10.0.0.2", identity(2, uuid=uuid_of(1)), "two"), machines=[machine(1)]),
        ("6/refresh-needs-strong-identity", "6/weak-uuid-live"),
        actions=("CreateMachine",),
        writes={},
    ),
    Row(
        "6/weak-entry-is-pending-and-marked",
        lambda: weak_of(created(answer("10.0.0.1", identity(1, uuid=PLACEHOLDER)))),
        ("weak", "entry"),
        says=("10.0.0.1:50000", "SN-0001-A", mac_of(1), PLACEHOLDER),
    ),
    Row(
        "6/byte-swapped-recorded",
        lambda: found(answer("10.0.0.2", identity(2, uuid=swapped_uuid(uuid_of(1))), "two"), machines=[machine(1)]),
        ("6/uuid-byte-swapped",),
        actions=("CreateMachine",),
        says=("probably one board",),
    ),
    Row(
        "6/byte-swapped-live",
        lambda: found(answer("10.0.0.1", 1), answer("10.0.0.2", identity(2, uuid=swapped_uuid(uuid_of(1))), "two")),
        ("6/uuid-byte-swapped",),
        actions=("CreateMachine", "CreateMachine"),
        says=("probably one board",),
    ),
    Row("6/partly-recorded", lambda: found(answer("10.0.0.5", 1), machines=[machine(1, identity={"uuid": uuid_of(1)})]), ("6/partly-recorded",)),
    # names
    Row("3/name-of-a-machine", lambda: names_of(created(answer("10.0.0.1", 1))), actions=("prod-a1b2c3d4",)),
    Row(
        "3/name-longer-on-a-clash",
        lambda: names_of(created(answer("10.0.0.1", 1), answer("10.0.0.2", 2, "two"))),
        actions=("prod-a1b2c3d4", "prod-a1b2c3d4-0001"),
    ),
    Row(
        "3/name-longer-where-taken",
        lambda: names_of(created(answer("10.0.0.1", 1), machines=[machine(7, name="prod-a1b2c3d4", clusterRef="other")])),
        actions=("prod-a1b2c3d4-0001",),
    ),
    Row(
        "3/weak-name-finds-itself",
        lambda: found(answer("10.0.0.1", identity(1, uuid="")), machines=list(created(answer("10.0.0.1", identity(1, uuid=""))).values())),
        ("6/weak-same-entry",),
    ),
    # the table
    Row(
        "6/pending-own",
        lambda: found(answer("10.0.0.1", 1, "two"), machines=[machine(1)]),
        ("6/pending-own",),
        actions=("RefreshPin",),
        says=(fingerprint("one"), fingerprint("two")),
    ),
    Row("6/pending-own-probed", lambda: probed("10.0.0.1", machines=[machine(1)]), actions=("10.0.0.1",)),
    Row("6/pending-own-unchanged", lambda: found(answer("10.0.0.1", 1), machines=[machine(1)]), ("6/unchanged-certificate",)),
    Row(
        "6/pending-other",
        lambda: found(answer("10.0.0.7", 1), silent("10.0.0.1"), machines=[machine(1)]),
        ("6/pending-other",),
        writes={"prod-1": ("observedEndpoint", "observedEndpointFor")},
    ),
    Row(
        "6/pending-other-refreshes",
        lambda: found(answer("10.0.0.7", 1, "two"), silent("10.0.0.1"), machines=[machine(1)]),
        ("6/pending-other",),
        actions=("RefreshPin",),
    ),
    Row(
        "6/hand-written-approval-is-pending",
        lambda: found(answer("10.0.0.1", 1, "two"), machines=[machine(1, "approved", approvedBy="")]),
        ("6/pending-own",),
        actions=("RefreshPin",),
    ),
    Row("6/rejected-own-not-probed", lambda: probed("10.0.0.1", "10.0.0.2", machines=[machine(1, "rejected")]), ("6/rejected-own",), actions=("10.0.0.2",)),
    Row("6/rejected-own-writes-nothing", lambda: found(answer("10.0.0.1", 1, "two"), machines=[machine(1, "rejected")]), ("6/rejected-own",)),
    Row(
        "6/rejected-other",
        lambda: found(answer("10.0.0.7", 1, "two"), machines=[machine(1, "rejected")]),
        ("6/rejected-other",),
        writes={"prod-1": ("observedEndpoint", "observedEndpointFor")},
    ),
    Row("6/rejected-is-not-asked-either", lambda: verified(answer("10.0.0.7", 1), machines=[machine(1, "rejected")])),
    Row("6/node-host-not-probed", lambda: probed("10.0.0.1", "10.0.0.2", hosts=[KubernetesHost("n1", "10.0.0.1")]), ("6/node-host",), actions=("10.0.0.2",)),
    Row("6/marked-node-host-is-probed", lambda: probed("10.0.0.2", hosts=[KubernetesHost("n1", "10.0.0.1", moment(NOW))]), actions=("10.0.0.2", "10.0.0.1")),
    Row(
        "6/approved-pinned-own-not-probed",
        lambda: probed("10.0.0.1", "10.0.0.2", machines=[machine(1, "approved")]),
        ("6/approved-pinned-own",),
        actions=("10.0.0.2",),
    ),
    Row("6/approved-pinned-own-writes-nothing", lambda: found(answer("10.0.0.1", 1, "two"), machines=[machine(1, "approved")]), ("6/approved-pinned-own",)),
    Row(
        "6/approved-pinned-other",
        lambda: found(answer("10.0.0.7", 1, "two"), silent("10.0.0.1"), machines=[machine(1, "approved")]),
        ("6/approved-pinned-other",),
        writes={"prod-1": ("observedEndpoint", "observedEndpointFor")},
    ),
    Row(
        "6/approved-unpinned-own",
        lambda: found(answer("10.0.0.1", 1), machines=[machine(1, "approved", pin="", status={"stage": "maintenance"})]),
        ("6/approved-unpinned-own",),
    ),
    Row(
        "6/approved-unpinned-own-not-probed",
        lambda: probed("10.0.0.1", machines=[machine(1, "approved", pin="", status={"stage": "maintenance"})]),
        ("6/approved-unpinned-own",),
    ),
    Row(
        "6/approved-unpinned-other",
        lambda: found(answer("10.0.0.7", 1), machines=[machine(1, "approved", pin="", status={"stage": "maintenance"})]),
        ("6/approved-unpinned-other",),
    ),
    Row("6/sent-own", lambda: found(answer("10.0.0.1", 1, "two"), machines=[machine(1, "approved", status=SENT)]), ("6/sent-own",)),
    Row("6/sent-own-not-probed", lambda: probed("10.0.0.1", machines=[machine(1, "approved", status=SENT)]), ("6/sent-own",)),
    Row("6/sent-other", lambda: found(answer("10.0.0.7", 1, "two"), silent("10.0.0.1"), machines=[machine(1, "approved", status=SENT)]), ("6/sent-other",)),
    Row("6/converged-other", lambda: found(answer("10.0.0.7", 1, "two"), machines=[machine(1, "approved", status=CONVERGED)]), ("6/sent-other",)),
    Row("6/sending-other", lambda: found(answer("10.0.0.7", 1), machines=[machine(1, "approved", status={"sending": {"hash": "a"}})]), ("6/sent-other",)),
    Row("6/lost-status-other", lambda: found(answer("10.0.0.7", 1), machines=[machine(1, "approved", pin="")]), ("6/sent-other",)),
    # around the table
    Row("6/own-address-is-asked-first", lambda: verified(answer("10.0.0.7", 1), machines=[machine(1)]), actions=("10.0.0.1",)),
    Row(
        "6/own-address-answers",
        lambda: found(answer("10.0.0.1", 1), answer("10.0.0.7", 1), machines=[machine(1)]),
        ("6/own-address-answers", "6/unchanged-certificate"),
    ),
    Row(
        "6/own-address-answers-approved",
        lambda: found(answer("10.0.0.1", 1), answer("10.0.0.7", 1), machines=[machine(1, "approved")]),
        ("6/own-address-answers",),
    ),
    Row(
        "6/two-addresses-one-certificate",
        lambda: found(answer("10.0.0.1", 1), answer("10.0.0.2", 1)),
        ("6/new", "6/second-address"),
        actions=("CreateMachine",),
    ),
    Row(
        "6/moved-to-two-addresses",
        lambda: found(answer("10.0.0.7", 1), answer("10.0.0.8", 1), silent("10.0.0.1"), machines=[machine(1)]),
        ("6/pending-other", "6/second-address"),
        writes={"prod-1": ("observedEndpoint", "observedEndpointFor")},
    ),
    Row(
        "6/twin-of-a-pending",
        lambda: found(answer("10.0.0.1", 1), answer("10.0.0.7", 1, "two"), machines=[machine(1)]),
        ("6/twin",),
        writes={"prod-1": ("WeakIdentity",)},
        says=(fingerprint("one"), fingerprint("two"), "10.0.0.7:50000"),
    ),
    Row("6/twin-of-nobody", lambda: found(answer("10.0.0.1", 1), answer("10.0.0.7", 1, "two")), ("6/twin",)),
    Row("6/twin-of-an-approved", lambda: found(answer("10.0.0.1", 1), answer("10.0.0.7", 1, "two"), machines=[machine(1, "approved")]), ("6/twin",)),
    Row(
        "6/twin-gone",
        lambda: found(
            answer("10.0.0.1", 1),
            machines=[machine(1, status={"conditions": [{"type": "WeakIdentity", "status": "True", "reason": "TwinIdentity", "message": "two"}]})],
        ),
        ("6/unchanged-certificate",),
        writes={"prod-1": ("-WeakIdentity",)},
    ),
    Row(
        "6/twin-not-gone-by-a-narrow-look",
        lambda: found(
            answer("10.0.0.1", 1),
            machines=[machine(1, status={"conditions": [{"type": "WeakIdentity", "status": "True", "reason": "TwinIdentity", "message": "two"}]})],
            request=Discovery("prod", (parse_endpoint("10.0.0.1"),)),
        ),
    ),
    Row(
        "6/pending-limit",
        lambda: found(answer("10.0.0.1", 1), answer("10.0.0.2", identity(2), "two"), machines=FULL[2:], request=Discovery("prod", pending_limit=98)),
        ("6/pending-limit",),
        says=("2 more machines answered",),
    ),
    Row(
        "6/pending-limit-is-an-option",
        lambda: found(answer("10.0.0.200", 200), machines=FULL, request=Discovery("prod", pending_limit=101)),
        actions=("CreateMachine",),
        absent=("6/pending-limit",),
    ),
    Row(
        "6/pending-limit-counts-the-pass",
        lambda: found(answer("10.0.0.1", 1), answer("10.0.0.2", 2, "two"), request=Discovery("prod", pending_limit=1)),
        ("6/pending-limit", "6/new"),
        actions=("CreateMachine",),
    ),
    Row(
        "6/named-is-always-probed",
        lambda: probed(machines=[machine(1, "approved", status=SENT), machine(2, "rejected")], named=["10.0.0.1", "10.0.0.2"]),
        actions=("10.0.0.1", "10.0.0.2"),
    ),
    Row("6/known-address-other-uuid", lambda: found(answer("10.0.0.1", 5), machines=[machine(1)]), ("6/other-answer-at-known-address",)),
    Row(
        "6/known-address-other-serial",
        lambda: found(answer("10.0.0.1", identity(1, serial="OTHER-1")), machines=[machine(1)]),
        ("6/other-answer-at-known-address",),
    ),
    Row("6/known-address-other-macs", lambda: found(answer("10.0.0.1", identity(1, macs=())), machines=[machine(1)]), ("6/other-answer-at-known-address",)),
    Row("6/known-address-weak", lambda: found(answer("10.0.0.1", identity(5, uuid="")), machines=[machine(1)]), ("6/other-answer-at-known-address",)),
    Row(
        "6/left-discovery",
        lambda: probed("10.0.0.2", machines=[machine(1)]),
        ("6/left-discovery",),
        actions=("10.0.0.2",),
        says=("keeps its pin", "talos_machine"),
    ),
    Row("6/over-all-clusters", lambda: found(answer("10.0.0.7", 1, "two"), machines=[machine(1, clusterRef="other")]), ("6/other-cluster",)),
    Row("6/other-cluster-own-address", lambda: found(answer("10.0.0.1", 1, "two"), machines=[machine(1, clusterRef="other")]), ("6/other-cluster",)),
    Row("6/broken-record", lambda: found(answer("10.0.0.1", 1), broken=[Broken("TalosMachine", "x", "machines/x.yaml", 3, "bad")]), ("6/broken-records",)),
    Row("6/only-looking", lambda: found(answer("10.0.0.1", 1), answer("10.0.0.2", 2, "two"), machines=[machine(2)], request=Discovery("prod", register=False))),
    # addresses
    Row("3/refused-address-in-a-range", lambda: probed("10.9.0.1", "10.244.3.3", "10.96.0.9", "10.0.0.2"), ("3/endpoint-refused",), actions=("10.0.0.2",)),
    Row("3/refused-address-named", lambda: probed(named=["127.0.0.1", "0.0.0.0", "224.0.0.5", "10.0.0.2"]), ("3/endpoint-refused",), ("6/not-dialled",),
        actions=("10.0.0.2",)),
    Row("3/not-dialled", lambda: probed("127.0.0.1", "127.0.0.2"), ("6/not-dialled",),
        says=("2 addresses of spec.discovery are not dialled: 127.0.0.1:50000, 127.0.0.2:50000", "loopback", "allow_loopback")),
    Row("3/not-dialled-one", lambda: probed("127.0.0.1", "10.0.0.2"), ("6/not-dialled",), actions=("10.0.0.2",), says=("1 address of spec.discovery is",)),
    Row("3/not-dialled-many", lambda: probed(*(f"127.0.0.{number}" for number in range(101, 141))), ("6/not-dialled",),
        says=("127.0.0.105:50000 and 35 more",)),
    Row("3/all-are-dialled", lambda: probed("10.0.0.2"), absent=("6/not-dialled",), actions=("10.0.0.2",)),
)
