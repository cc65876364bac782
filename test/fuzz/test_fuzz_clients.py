# SPDX-License-Identifier: PostgreSQL
"""test_fuzz_clients: a few seeds of fuzz_clients, always the same, and that it would find something.
"""
from clients_run import CLIENTS, CONF, House
from clients_script import Step, script_of, shown_turn
from clients_small import Smaller

from pgt.wire import query

SEEDS = range(1, 9)


def test_clients_do_not_meet(pg, start_pool):
    """What several clients on links that change are told is what each would be told by a server of its own."""
    house = House(pg, start_pool(pg.address, **CONF))
    for seed in SEEDS:
        script = script_of(seed, CLIENTS)
        found = house.play(script)
        assert found is None, f"seed {seed}: {found}\n" + "\n".join(map(shown_turn, script[:found.turn + 1]))


def test_a_difference_is_found(pg, start_pool):
    """A session that is not put right is noticed, and of the script only what is needed is left."""
    house = House(pg, start_pool(pg.address, **{**CONF, "pool_mode": "statement"}))
    script = [(Step(0, (query("select 1"), query("set work_mem = '3MB'"))),), (Step(1, (query("select 2"),)),),
              (Step(0, (query("begin"),)), Step(1, (query("show work_mem"),)))]
    found = house.play(script)
    assert found is not None and found.who == 0 and "08P01" in found.answers.ours[0]
    smaller = Smaller(house, script, found, 100)
    smaller.run()
    assert smaller.script == [(Step(0, (query("begin"),)),)]
