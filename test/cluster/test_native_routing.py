# SPDX-License-Identifier: PostgreSQL
"""Native replication: which of the settings of balancing hold for its reads."""
import pytest
from pgt import wire as w
from pgt.native import one

WEIGHTS = {"backend_weight0": 0, "backend_weight1": 1}


@pytest.fixture(name="apart")
def _apart(pair):
    """Reads go to node 1, whose rows are others."""
    def make(**conf):
        it = pair(2, **WEIGHTS, **conf)
        it.nodes[0].rows("update accounts set amount = 1000")
        return it
    return make


def amount(c, sql):
    return int(c.rows(sql)[0][0])


def by_name(c, sql, name):
    c.send(w.parse(sql, name), w.SYNC)
    c.ready()
    got = []
    for _ in range(3):
        c.send(w.bind(name=name), w.execute(), w.SYNC)
        got += [int(m.row()[0]) for m in c.ready() if m.type == "D"]
    return got


READ = "select amount from accounts where id = 1"
HINTED = "/*NO LOAD BALANCE*/ " + READ


def test_a_hint_keeps_a_read_on_the_main_node(apart):
    it = apart()
    with it.client() as c:
        for _ in range(3):
            assert [amount(c, READ), amount(c, HINTED), amount(c, "/* other */ " + READ)] == [100, 1000, 100]
        assert by_name(c, HINTED, "h") == [1000] * 3 and by_name(c, READ, "r") == [100] * 3
        one(c, "pgpool set allow_sql_comments = on")
        assert amount(c, HINTED) == 100
        one(c, "pgpool set allow_sql_comments = off")
        assert amount(c, "/* other */ " + READ) == 1000 and amount(c, READ) == 100


def test_patterns_keep_a_read_on_the_main_node(apart):
    it = apart(primary_routing_query_pattern_list="select amount from accounts where id = .*")
    with it.client() as c:
        for _ in range(3):
            assert [amount(c, READ), amount(c, "select amount from accounts limit 1")] == [1000, 100]
        assert by_name(c, READ, "r") == [1000] * 3 and by_name(c, "select max(amount) from accounts", "m") == [100] * 3


@pytest.mark.parametrize("conf, count", [
    ({"write_function_list": "f_.*"}, 1), ({"read_only_function_list": "g_.*,fails_here"}, 1)])
def test_lists_of_functions(apart, conf, count):
    """What is listed as a write runs on all nodes, what is not on one."""
    it = apart(**conf)
    with it.client() as c:
        for name in ("f_x", "g_x"):
            one(c, f"create function {name}() returns int language plpgsql stable as $$ begin raise log 'runs {name}'; return 1; end $$")
        for _ in range(2):
            one(c, "select f_x()")
            one(c, "select g_x()")
    runs = [[n.log().count(f"runs {name}\n") for n in it.nodes] for name in ("f_x", "g_x")]
    assert runs == [[2, 2], [0, 2]], (runs, count)
