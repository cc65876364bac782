# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_hosts: three pgpools with an address, each on a host of its own on a real ethernet: leaders that are killed, hang,
lose their wire or part of the others. A fourth host asks all the time who has the address: never do two have it."""
import contextlib
import re
import signal
import socket

import pytest

from pgt import ether, waits
from watchdog_lab import CLIENTS, PATIENCE, V4, V6, clusters, is_closed


WITHIN_S, ROUNDS = 3.0, 5
EARLY = "all other pgpools say that the address is not there"


@pytest.fixture(scope="module")
def net():
    reason = ether.why_not()
    if reason:
        pytest.skip(reason)
    with contextlib.closing(ether.Ether(4)) as it:
        yield it


@pytest.fixture
def cluster(net):
    with clusters(net) as make:
        yield make


@pytest.mark.parametrize("address", [V4, V6])
def test_leader_is_killed(cluster, address):
    c = cluster(address)
    old = c.start()
    began = waits.now()
    c.members[old].kill()
    new = c.wait_holder((old,))
    back = c.first_answer(new, began) - began
    print(f"address back {back:.2f} s after kill -9 of the leader")
    c.check_moves(old, new)


@pytest.mark.slow
def test_the_address_is_back_within_three_seconds(cluster):
    """With the settings as they are. The best of some rounds: a busy machine notices and elects late (decisions/0022)."""
    c = cluster()
    c.start()
    took: list[float] = []
    seen = [0, 0, 0]  # of the logs: there are no servers, and nobody is let in to ask
    while min(took, default=WITHIN_S + 1) > WITHIN_S and len(took) < ROUNDS:
        for i, member in enumerate(c.members):
            waits.wait_for(f"pgpool {i} takes part", lambda i=i, member=member: re.search(
                r"successfully joined|\] to \[LEADER\]", member.log()[seen[i]:]), PATIENCE)
        old = c.wait_calm(1)
        began = waits.now()
        c.members[old].kill()
        new = c.wait_holder((old,))
        took.append(c.first_answer(new, began) - began)
        seen[old] = len(c.members[old].log())
        c.members[old].start()
    print("address back after kill -9 of the leader: " + ", ".join(f"{s:.2f}" for s in took) + " s")
    assert min(took) <= WITHIN_S


@pytest.mark.parametrize("election_ms", [500, pytest.param(100, marks=pytest.mark.slow)])
def test_the_watchdog_alone_is_killed(cluster, election_ms):
    """Another one is started, takes the address away, and says so: nobody waits for its lease."""
    c = cluster(wd_election_timeout=f"{election_ms}ms")
    c.start()
    for _ in range(4):  # started late, or elected again, it is as if nothing had been said
        new, seconds = c.kill_watchdog()
        print(f"address back {seconds:.2f} s after the watchdog alone was killed")
        if EARLY in c.members[new].log():
            return
    raise AssertionError(c.logs())


def test_leader_is_stopped(cluster):
    c = cluster()
    old = c.start()
    began = waits.now()
    c.members[old].signal(signal.SIGINT)
    new = c.wait_holder((old,))
    back = c.first_answer(new, began) - began
    print(f"address back {back:.2f} s after the leader was stopped")
    c.check_moves(old, new)


@pytest.mark.parametrize("address", [V4, V6])
def test_leader_hangs_and_goes_on(cluster, address):
    c = cluster(address)
    old = c.start()
    c.members[old].signal(signal.SIGSTOP)
    new = c.wait_holder((old,))
    c.members[old].signal(signal.SIGCONT)
    waits.holds_for("the old one stays without", lambda: not c.hosts[old].has(address) or c.elections() > 2, 4)
    assert c.wait_answers() == new or c.elections() > 2
    c.check_moves(old, new)


def test_leader_loses_its_wire(cluster, net):
    c = cluster()
    old = c.start()
    net.wire(c.hosts[old], False)
    new = c.wait_holder((old,))
    waits.wait_for("the old one gives it up", lambda: not c.hosts[old].has(V4), PATIENCE)
    net.wire(c.hosts[old], True)
    waits.holds_for("the old one stays without", lambda: not c.hosts[old].has(V4) or c.elections() > 2, 4)
    c.check_moves(old, new)


def test_leader_loses_one_of_the_others(cluster, net):
    """Who leads and one of the two others do not hear each other; the third hears all: one of them has the address, and it does
    not go to and fro: there are times of many election time-outs in which nobody takes it, however busy the machine is."""
    c = cluster()
    old = c.start()
    deaf = (old + 1) % 3
    for i in (old, deaf):
        net.switch.run("ip", "link", "set", c.hosts[i].port, "type", "bridge_slave", "isolated", "on")
    try:
        waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, 8)
        c.wait_calm(8)
        c.wait_answers()
    finally:
        for i in (old, deaf):
            net.switch.run("ip", "link", "set", c.hosts[i].port, "type", "bridge_slave", "isolated", "off")


def test_who_calls_from_where_a_member_is_stays(cluster, net):
    """More connections than wd_port keeps, none of which says a word: those from where no member is go, though they are younger."""
    c = cluster()
    holder = c.start()
    member = (holder + 1) % 3
    waits.wait_for("it has called", lambda: f"connection is received: pgpool {member} is" in c.members[holder].log(), PATIENCE)

    def call(stack: contextlib.ExitStack, host: ether.Host) -> socket.socket:
        sock = stack.enter_context(contextlib.closing(host.socket(socket.AF_INET, socket.SOCK_STREAM)))
        sock.settimeout(10)
        sock.connect((c.hosts[holder].address, 9000))
        sock.setblocking(False)
        return sock

    for _ in range(5):  # silence is borne for five seconds, whoever is silent: a slow machine has some tries
        with contextlib.ExitStack() as stack:
            began = waits.now()
            theirs = call(stack, c.hosts[member])
            others = [call(stack, net.hosts[CLIENTS]) for _ in range(40)]
            waits.wait_for("some have to go", lambda others=others: sum(map(is_closed, others)) >= 9)
            stays = not is_closed(theirs)
            if stays or waits.now() - began < 4:
                break
    assert stays


def test_all_at_once(cluster):
    """Killed together and started again: one has it again."""
    c = cluster()
    old = c.start()
    for member in c.members:
        member.kill()
    waits.wait_for("the kernel removes it", lambda: not c.hosts[old].has(V4), PATIENCE)
    c.asker.answers.clear()
    before = c.elections()
    c.start()
    waits.holds_for("at most one has it", lambda: sum(h.has(V4) for h in c.hosts) <= 1, 3)
    assert len(c.history()) <= c.elections() - before
