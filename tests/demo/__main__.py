# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m tests.demo`: the first life of a small cluster, with ansible-playbook against emulated Talos nodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from tests.demo.table import table
from tests.demo.world import SECOND_WORKER, SPEED, world
from tests.lab.control import Lab

HERE = Path(__file__).parent
WIDTH = 110


class Stage:
    """The project folder, the emulated nodes, and what is said between the commands."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self._color = sys.stdout.isatty()
        self._number = 0

    def chapter(self, title: str, text: str) -> None:
        self._number += 1
        print("\n" + self._bold(f"── {self._number}. {title} ".ljust(WIDTH, "─")))
        print(textwrap.fill(text, WIDTH) + "\n" if text else "", flush=True)

    def play(self, *arguments: str) -> None:
        """One ansible-playbook command, shown as a person would type it."""
        print(self._bold("$ ansible-playbook " + " ".join(arguments)), flush=True)
        environment = {**os.environ, "ANSIBLE_CONFIG": str(self.project / "ansible.cfg"), "ANSIBLE_HOME": str(self.project / ".ansible")}
        if self._color:
            environment["ANSIBLE_FORCE_COLOR"] = "1"
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        done = subprocess.run([program, *arguments], cwd=self.project, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"ansible-playbook {' '.join(arguments)} ended with {done.returncode}")

    def _bold(self, text: str) -> str:
        return f"\033[1m{text}\033[0m" if self._color else text


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ichor-demo-") as folder:
        project = Path(folder) / "project"
        shutil.copytree(HERE / "project", project)
        lab = Lab.start(world(), speed=SPEED)
        try:
            perform(Stage(project), lab)
        finally:
            lab.stop()


def perform(stage: Stage, lab: Lab) -> None:
    print("Three emulated machines have just booted from a Talos image and wait in maintenance mode at 127.60.0.1 to .3.")
    print("Whatever is shown below would be the same with real ones; only the settings at the end differ.")

    stage.chapter("Describe the cluster", "A cluster is a record; its keys are made once, for the owner's eyes only. What shall be different from Talos's "
                  "own defaults is a patch, and each patch is tried before it is written. From these the configurations are rendered.")
    stage.play("cluster.yml")

    stage.chapter("Find the machines", "Talos announces nothing, so finding means probing. What answers in maintenance mode is identified by UUID, "
                  "serial and MAC addresses, and written down as pending, with the fingerprint of its certificate. Nothing is sent to it.")
    stage.play("discover.yml")

    stage.chapter("Read the plan", "Check mode shows what a run would do, and why, to machines that nobody has approved yet. It writes nothing, "
                  "neither to a machine nor to a record.")
    stage.play("provision.yml", "--check")

    stage.chapter("Do it", "The same playbook for real: a person's approval, one configuration to each machine, rendered from the records, etcd "
                  "bootstrapped once, and both followed until they run.")
    stage.play("provision.yml")

    stage.chapter("The machines", "What the records say, with what the nodes answer now.")
    stage.play("show.yml")
    print(table(json.loads((stage.project / "machines.json").read_text(encoding="utf-8"))))

    stage.chapter("Compare", "Does each node run what the records say? Then somebody changes a patch, and the difference is told by path.")
    stage.play("compare.yml")

    stage.chapter("An attack", "A second worker is approved. Then it goes down, and at its address there answers a twin: another machine that claims "
                  "the same UUID, serial and MAC address, but has a certificate of its own. It waits for a configuration with the cluster's keys in it.")
    stage.play("approve-second.yml")
    attack(lab)
    stage.play("attack.yml")
    print("\n" + verdict(lab))

    stage.chapter("With machines of your own", "")
    print(ending())


def attack(lab: Lab) -> None:
    """The machine goes down and its twin takes the address."""
    address = lab.state(node=SECOND_WORKER)["address"]
    lab.power(node=SECOND_WORKER, state="off")
    links = [{"name": "enp1s0", "mac": "3c:ec:ef:00:00:03"}]
    lab.twin(node=SECOND_WORKER, name="twin", address=address, machine={"links": links, "disks": [{"name": "sda", "model": "ACME SSD 512"}]})


def verdict(lab: Lab) -> str:
    """What the twin got, by the log of the emulated node itself."""
    log = lab.log(node="twin")
    handshakes = sum(1 for entry in log if entry["event"] == "tls")
    sent = [entry for entry in log if entry.get("kind") == "write"]
    if sent:
        raise SystemExit(f"the twin was sent something: {sent}")
    return textwrap.fill(f"The twin's own log: {handshakes} TLS handshakes, 0 configurations received. A person who has looked at the machine's console "
                         "and finds the new fingerprint there can accept it by name; nobody else can.", WIDTH)


def ending() -> str:
    settings = (HERE / "project" / "settings.yml").read_text(encoding="utf-8").partition("---\n")[2].rstrip()
    return "\n".join((
        "These playbooks are in tests/demo/project. To use them with machines of your own, boot these from a Talos image, and change",
        "the lines of settings.yml:", "", textwrap.indent(settings, "    ")))


if __name__ == "__main__":
    main()
