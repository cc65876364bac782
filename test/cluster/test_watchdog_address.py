# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_address: the virtual address of the leader, on hosts of the test's own and on a real ethernet: taken, announced,
answered for by one machine at a time, and taken away by the kernel when its holder is killed or hangs. The leader is
addr_holder, which is told when to lead: who leads is tested elsewhere."""
import contextlib
import os
import re
import signal
import subprocess
import time

import pytest

from pgt import ether, procs, waits

BUILD = os.environ.get("PGPOOL_BUILD") or os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd()
HOLDER = os.path.join(BUILD, "addr_holder")
LEASE_MS, PERIOD_MS = 2400, 100
ANNOUNCEMENTS = 12  # six times, as a request and as a reply
V4, V6 = "192.0.2.100", "2001:db8::100"
KINDS = [V4, V6]
DEFAULTS = "use_watchdog = off\nbackend_hostname0 = 'localhost'\nbackend_port0 = 5432\n"


@pytest.fixture(scope="module")
def net():
    reason = ether.why_not()
    if reason:
        pytest.skip(reason)
    if not os.path.exists(HOLDER):
        pytest.skip("PGPOOL_BUILD names no folder with addr_holder")
    with contextlib.closing(ether.Ether(3)) as it:
        yield it


class Holder:
    """An addr_holder on a host."""

    def __init__(self, host: ether.Host, settings: str, wrap: tuple[str, ...] = (), lease_ms: int = LEASE_MS):
        self.host = host
        self.folder = procs.folder("holder")
        conf = self.folder / "pgpool.conf"
        conf.write_text(DEFAULTS + settings, encoding="utf-8")
        self.out, self.log_path = self.folder / "out", self.folder / "log"
        self.out.touch()
        with open(self.out, "ab") as out, open(self.log_path, "ab") as log:
            self.popen = subprocess.Popen([*host.enter(), *wrap, HOLDER, str(conf), str(lease_ms), str(PERIOD_MS)],
                                          stdin=subprocess.PIPE, stdout=out, stderr=log, cwd="/")
        self.wait(r"ready|refused")

    def tell(self, word: str) -> None:
        assert self.popen.stdin
        self.popen.stdin.write(f"{word}\n".encode())
        self.popen.stdin.flush()

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def lines(self, pattern: str) -> list[str]:
        whole = self.out.read_text(encoding="utf-8").rpartition("\n")[0]
        return [x for x in whole.splitlines() if re.match(pattern, x)]

    def wait(self, pattern: str, n: int = 1) -> str:
        try:
            return waits.wait_for(f"{n} times {pattern}", lambda: len(self.lines(pattern)) >= n and self.lines(pattern), 30)[n - 1]
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.out.read_text()}\n{self.log()}") from None

    def status(self) -> dict[str, str]:
        n = len(self.lines("status "))
        self.tell("status")
        return dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", self.wait("status ", n + 1)))

    def lead(self) -> None:
        n = len(self.lines("taken"))
        self.tell("lead")
        self.wait("taken", n + 1)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.popen.send_signal(number)
        if number == signal.SIGKILL:
            self.popen.wait()

    def end(self) -> None:
        """In order."""
        assert self.popen.stdin
        self.popen.stdin.close()
        self.popen.wait(30)

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.kill()
        self.popen.wait()
        assert self.popen.stdin
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.close()


@pytest.fixture
def start(net):
    """Starts holders; none, and no address, is left."""
    with contextlib.ExitStack() as stack:
        def one(number: int, address: str, more: str = "", **kwargs) -> Holder:
            holder = Holder(net.hosts[number], f"delegate_ip = '{address}'\n{more}", **kwargs)
            stack.callback(holder.close)
            return holder
        yield one
    for host in net.hosts[:2]:
        for address in KINDS:
            waits.wait_for(f"{address} is gone", lambda h=host, a=address: not h.has(a), 60)


@pytest.fixture
def asker(net):
    with contextlib.closing(ether.Asker(net.hosts[2], KINDS)) as it:
        yield it


def boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@pytest.mark.parametrize("address", KINDS)
def test_leader_holds_it_and_hands_it_over(net, start, asker, address):
    one, two = start(0, address), start(1, address)
    one.lead()
    assert asker.answers_now(address, net.hosts[0])
    waits.wait_for("the kernel has it for the time of a lease", lambda: [
        x for x in net.hosts[0].run("ip", "-o", "addr").splitlines() if f"{address}/" in x and re.search(r"valid_lft [12]sec", x)])
    status = one.status()
    assert (status["how"], status["held"], status["on"]) == ("kernel", "1", "eth0")
    assert 0 < int(status["left"]) <= LEASE_MS
    one.tell("stop")
    one.wait("lost")
    assert not net.hosts[0].has(address)
    two.lead()
    assert asker.answers_now(address, net.hosts[1])
    assert asker.holders(address) == [net.hosts[0].mac, net.hosts[1].mac]


@pytest.mark.parametrize("address", KINDS)
def test_it_stays_while_a_majority_is_heard(net, start, asker, address):
    one = start(0, address)
    one.lead()
    waits.holds_for("held", lambda: net.hosts[0].has(address), 2 * LEASE_MS / 1000)
    assert one.lines("lost") == []


@pytest.mark.parametrize("address", KINDS)
def test_no_majority_is_heard_any_more(net, start, asker, address):
    one = start(0, address)
    one.lead()
    one.tell("deaf")
    assert re.match("lost no majority was heard in time|lost the lease is over", one.wait("lost"))
    assert not net.hosts[0].has(address)
    waits.wait_for("the lease is over", lambda: one.status()["leading"] == "0")
    assert "cannot be taken" not in one.log()


@pytest.mark.parametrize("address", KINDS)
def test_a_majority_is_heard_again(net, start, asker, address):
    """It comes back by itself, taken anew."""
    one = start(0, address)
    one.lead()
    one.tell("deaf")
    one.wait("lost")
    one.lead()
    assert asker.answers_now(address, net.hosts[0])


@pytest.mark.parametrize("address", KINDS)
def test_holder_is_killed(net, start, asker, address):
    one, two = start(0, address), start(1, address)
    one.lead()
    assert asker.answers_now(address, net.hosts[0])
    one.kill()
    until = boot_s() + LEASE_MS / 1000
    waits.wait_for("the lease is over", lambda: boot_s() > until, 60)
    two.lead()
    assert "still has the virtual address" not in two.log()
    assert asker.answers_now(address, net.hosts[1])
    assert asker.holders(address) == [net.hosts[0].mac, net.hosts[1].mac]


@pytest.mark.parametrize("address", KINDS)
def test_holder_hangs(net, start, asker, address):
    """The next one is told to lead at once, without waiting for the lease: it asks, hears an answer and waits."""
    one, two = start(0, address), start(1, address)
    one.lead()
    assert asker.answers_now(address, net.hosts[0])
    one.kill(signal.SIGSTOP)
    two.lead()
    assert "still has the virtual address" in two.log()
    assert asker.answers_now(address, net.hosts[1])
    one.kill(signal.SIGCONT)
    one.wait("lost")
    one.tell("deaf")
    waits.holds_for("the new one has it", lambda: not net.hosts[0].has(address), 2)
    assert one.status()["held"] == "0"
    assert asker.holders(address) == [net.hosts[0].mac, net.hosts[1].mac]


@pytest.mark.parametrize("address", KINDS)
def test_two_want_it_at_once(net, start, asker, address):
    both = [start(0, address), start(1, address)]
    for holder in both:
        holder.tell("lead")
    waits.wait_for("one has it", lambda: any(h.lines("taken") for h in both), 60)
    waits.holds_for("never both", lambda: sum(h.has(address) for h in net.hosts[:2]) <= 1, 3)
    assert len(asker.holders(address)) == 1


@pytest.mark.parametrize("how", ["kernel", "hook", "commands"])
def test_not_before_its_time(net, start, how):
    """The lease of a former leader may still run."""
    folder = procs.folder("early")
    one = start(0, V4, commands(folder, 1) if how == "commands" else
                f"wd_escalation_command = 'touch {folder}/up-{V4}'\n" if how == "hook" else "",
                wrap=POWERLESS if how == "commands" else ())
    until = boot_s() + 3
    one.tell("wait 3000")
    one.tell("lead")
    waits.holds_for("not yet", lambda: not (net.hosts[0].has(V4) or (folder / f"up-{V4}").exists()) or boot_s() > until - 0.1, 3)
    one.wait("taken")


def test_somebody_removes_it(net, start, asker):
    one = start(0, V4)
    one.lead()
    net.hosts[0].run("ip", "addr", "del", f"{V4}/24", "dev", "eth0")
    one.wait("taken", 2)
    assert net.hosts[0].has(V4)


def test_another_claims_it(net, start, asker):
    """Whoever believed the other machine is told at once that the address is where it was."""
    one = start(0, V4)
    one.lead()
    assert asker.answers_now(V4, net.hosts[0])
    ours = (V4, net.hosts[0].mac)
    waits.wait_for("all announcements", lambda: asker.announced.count(ours) == ANNOUNCEMENTS, 60)
    asker.claim(net.hosts[1], V4)
    waits.wait_for("it is announced again", lambda: asker.announced.count(ours) > ANNOUNCEMENTS, 60)
    assert (V4, net.hosts[1].mac) in asker.announced
    assert "says that it has the virtual address" in one.log()
    assert not one.lines("lost")


def test_one_is_left_on_the_machine(net, start):
    net.hosts[0].run("ip", "addr", "add", f"{V4}/24", "dev", "eth0")
    one = start(0, V4)
    assert not net.hosts[0].has(V4)
    assert "left by a former process" in one.log()


def test_interface_of_the_operator(net, start):
    one = start(0, "198.51.100.7", "if_up_cmd = 'ip addr add $_IP_$/28 dev eth0 label eth0:pg'\n")
    one.lead()
    assert re.search(r"198\.51\.100\.7/28 .*eth0:pg", net.hosts[0].run("ip", "-o", "addr"))
    one.tell("stop")
    one.wait("lost")


def test_no_such_interface(start):
    one = start(0, "198.51.100.7", "if_up_cmd = 'ip addr add $_IP_$/28 dev nothing0'\n")
    one.tell("lead")
    waits.wait_for("the reason is told", lambda: 'no network interface "nothing0"' in one.log(), 60)
    assert one.status()["held"] == "0"


def test_lease_that_the_kernel_cannot_keep(start):
    one = start(0, V4, lease_ms=1500)
    one.tell("lead")
    waits.wait_for("the reason is told", lambda: "is too short for the kernel" in one.log(), 60)
    assert one.status()["held"] == "0"


def test_interfaces_that_matter(net, start, asker):
    one = start(0, V4, "wd_monitoring_interfaces_list = 'eth0'\n")
    one.lead()
    net.wire(net.hosts[0], False)
    try:
        assert "wd_monitoring_interfaces_list" in one.wait("unfit")
        one.wait("lost")
        assert not net.hosts[0].has(V4)
    finally:
        net.wire(net.hosts[0], True)
    one.wait("fit")
    one.wait("taken", 2)
    assert asker.answers_now(V4, net.hosts[0])


def test_trusted_servers(net, start):
    folder = procs.folder("trusted")
    one = start(0, V4, f"trusted_servers = 'gw-1, gw-2'\nwd_interval = 1\ntrusted_server_command = 'test -e {folder}/%h'\n")
    one.tell("lead")
    assert one.wait("unfit") == "unfit no trusted server answers"
    assert 'watchdog failed to ping host:"gw-1"' in one.log()
    assert not net.hosts[0].has(V4)
    (folder / "gw-2").touch()
    one.wait("taken")
    (folder / "gw-2").unlink()
    one.wait("unfit", 2)
    assert not net.hosts[0].has(V4)


def test_hooks(net, start):
    folder = procs.folder("hooks")
    one = start(0, V4, f"wd_escalation_command = 'ip -o addr > {folder}/up'\nwd_de_escalation_command = 'touch {folder}/down'\n")
    one.lead()
    assert V4 not in (folder / "up").read_text(encoding="ascii")
    assert not (folder / "down").exists()
    one.tell("stop")
    one.wait("lost")
    waits.wait_for("the other hook", (folder / "down").exists)


def test_no_address_but_hooks(net, start):
    folder = procs.folder("hooks")
    one = start(0, "", f"wd_escalation_command = 'touch {folder}/up'\nwd_de_escalation_command = 'touch {folder}/down'\n")
    one.lead()
    assert (folder / "up").exists()
    assert one.status()["how"] == "none"
    one.tell("deaf")
    one.wait("lost")
    waits.wait_for("the other hook", (folder / "down").exists)


@pytest.mark.parametrize("how", ["the lead is lost", "pgpool stops"])
def test_the_hook_back_comes_behind_the_hook(start, how):
    """Whatever the first does to an address elsewhere, the second has the last word; and the next first one waits for it."""
    folder = procs.folder("hooks")
    notes = folder / "notes"
    up = f"echo begin >> {notes}; while test ! -e {folder}/go; do sleep 0.05; done; echo up >> {notes}"
    one = start(0, "", f"wd_escalation_command = '{up}'\nwd_de_escalation_command = 'echo down >> {notes}'\n")
    one.tell("lead")
    waits.wait_for("the hook runs", notes.exists)
    one.tell("stop")
    again = how == "the lead is lost"
    if again:
        waits.wait_for("it is heard", lambda: one.status()["leading"] == "0")
        assert one.status()["held"] == "1", "somebody else may take it while the hook is at it"
        one.tell("lead")
        waits.wait_for("it is heard", lambda: one.status()["leading"] == "1")
    else:
        one.end()
    (folder / "go").touch()
    expected = "begin up down begin up".split() if again else "begin up down".split()
    waits.wait_for("all hooks have run", lambda: len(notes.read_text(encoding="ascii").split()) >= len(expected))
    assert notes.read_text(encoding="ascii").split() == expected


def test_commands_end_before_the_lease(start):
    """Where the kernel does not take the address away, commands need time for it: they begin a second before. By the clock of leases; a slow
    machine has some tries."""
    folder = procs.folder("hooks")
    gone = folder / "gone"
    for _ in range(5):
        one = start(0, "", f"wd_de_escalation_command = 'cut -d\" \" -f1 /proc/uptime > {gone}.new; mv {gone}.new {gone}'\n")
        one.lead()
        last = boot_s() - PERIOD_MS / 1000
        one.tell("deaf")
        waits.wait_for("the hook has run", gone.exists)
        left = last + LEASE_MS / 1000 - float(gone.read_text(encoding="ascii"))
        gone.unlink()
        if left > 0.2:
            return
    assert left > 0.2


def commands(folder, ping: int) -> str:
    """Commands that only take notes."""
    (folder / "ping").write_text(f"#!/bin/sh\nexit $(cat {folder}/answer)\n", encoding="ascii")
    (folder / "ping").chmod(0o755)
    (folder / "answer").write_text(str(ping), encoding="ascii")
    folder.chmod(0o777)
    return (f"ping_path = '{folder}'\nif_cmd_path = '/bin'\nif_up_cmd = 'touch {folder}/up-$_IP_$'\n"
            f"if_down_cmd = 'rm {folder}/up-$_IP_$'\narping_path = '/bin'\narping_cmd = 'touch {folder}/told-$_IP_$'\n")


POWERLESS = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")


def test_commands_where_the_kernel_does_not_let_us(net, start):
    folder = procs.folder("commands")
    one = start(0, V4, commands(folder, 0), wrap=POWERLESS)
    assert "CAP_NET_ADMIN" in one.log()
    one.tell("lead")
    waits.wait_for("somebody answers", lambda: "another machine still answers" in one.log(), 60)
    (folder / "answer").write_text("1", encoding="ascii")
    one.wait("taken")
    assert one.status()["how"] == "commands"
    assert (folder / f"up-{V4}").exists()
    waits.wait_for("it is announced", (folder / f"told-{V4}").exists)
    one.tell("deaf")
    one.wait("lost")
    waits.wait_for("it is removed", lambda: not (folder / f"up-{V4}").exists())
    waits.wait_for("the command has ended", lambda: one.status()["held"] == "0")


@pytest.mark.parametrize("command,status", [("false", "exit status 1"), ("no-such-program", "exit status 127 (no such command)"), ("/etc/passwd", "exit status 126 (it may not be executed)")])
def test_command_fails(net, start, command, status):
    folder = procs.folder("commands")
    one = start(0, V4, commands(folder, 1) + f"if_up_cmd = '{command}'\n", wrap=POWERLESS)
    one.tell("lead")
    waits.wait_for("the reason is told", lambda: f"if_up_cmd failed: {status}" in one.log(), 60)
    assert one.status()["held"] == "0"


@pytest.mark.parametrize("settings,reason", [
    ("delegate_ip = 'db.example'\n", 'delegate_ip "db.example" is no address'),
    ("delegate_ip = '192.0.2.9/24'\n", "is no address"),
    ("trusted_servers = 'gw;reboot'\n", 'trusted_servers names "gw;reboot"'),
])
def test_refused_at_the_start(net, settings, reason):
    one = Holder(net.hosts[0], settings)
    try:
        assert reason in one.wait("refused")
    finally:
        one.close()
