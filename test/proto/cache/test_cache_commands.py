# SPDX-License-Identifier: PostgreSQL
"""test_cache_commands: PGPOOL EXPLAIN says what the query cache does with a statement; PGPOOL SET CACHE DELETE removes one text."""
import pytest
from cache_house import ask, login, run, start_cached


@pytest.fixture
def pool(pg, start_pool):
    pg.rows("drop table if exists ct cascade; create table ct (a int primary key, b int); insert into ct values (1, 1), (2, 2)")
    return start_cached(pg, start_pool, num_init_children=1, pool_mode="transaction")


def cached(w, sql: str) -> str:
    return w.rows("pgpool explain " + sql)[0][6].decode()


def delete(w, sql: str) -> str:
    found = w.simple("pgpool set cache delete '" + sql.replace("'", "''") + "'")
    assert [m.type for m in found if m.type in "EC"] == ["C"]
    return next(m.fields["M"] for m in found if m.type == "N")


READ = "select b from ct where a = 1"


def test_explain(pg, pool):
    with login(pool) as w:
        assert cached(w, READ) == "not known yet"
        ask(w, READ)
        assert cached(w, READ) == "answered from the cache"
        assert cached(w, "select b from ct where a = 2") == "kept when it is asked for"
        assert cached(w, "select now() from ct") == "it asks for the time"
        assert cached(w, "/*NO QUERY CACHE*/" + READ) == "NO QUERY CACHE"
        assert cached(w, "update ct set b = 2") == "it is no plain SELECT"
        ask(w, "select relname from pg_class where false")
        assert cached(w, "select relname from pg_class where false") == "a system catalogue"
        run(w, "begin", "update ct set b = 3 where a = 1")
        assert cached(w, READ).startswith("not now: the session")
        run(w, "rollback")
        run(w, "update ct set b = 3 where a = 1")
        assert cached(w, READ) == "kept when it is asked for"
        run(w, "set datestyle = 'German'")
        ask(w, READ)
        assert cached(w, READ) == "answered from the cache"
        run(w, "reset datestyle")
        assert cached(w, READ) == "kept when it is asked for"


def test_explain_without_a_cache(pg, start_pool):
    with login(start_pool(pg.address, pool_mode="transaction")) as w:
        assert cached(w, "select 1") == ""


def old(pg, w, *how) -> bool:
    """Whether the answer is that from before a write around us."""
    before = ask(w, READ, *how)
    pg.rows("update ct set b = b + 1 where a = 1")
    return ask(w, READ, *how) == before


def test_delete(pg, pool):
    with login(pool) as w:
        assert delete(w, READ) == f'query cache does not exist for query: "{READ}"'
        ask(w, READ), ask(w, READ)
        run(w, "set datestyle = 'German'")
        ask(w, READ), ask(w, READ, ())
        assert old(pg, w) and old(pg, w, ())
        run(w, "reset datestyle")
        assert old(pg, w)
        ask(w, "select b from ct where a = 2")
        assert delete(w, READ + ";") == f'query cache deleted. query: "{READ};"'
        truth = pg.rows(READ)
        assert ask(w, READ) == [[str(truth[0][0]).encode()]] or ask(w, READ) == truth
        assert cached(w, "select b from ct where a = 2") == "answered from the cache"
        run(w, "set datestyle = 'German'")
        assert cached(w, READ) == "kept when it is asked for"


def test_nobody_elses_result_goes(pg, pool):
    pg.rows("do $$begin if not exists (select from pg_roles where rolname = 'cd_other') then create role cd_other login superuser; end if; end$$")
    with login(pool) as w, login(pool, user="cd_other") as other:
        ask(w, READ), ask(other, READ)
        assert cached(w, READ) == cached(other, READ) == "answered from the cache"
        assert "deleted" in delete(other, READ)
        assert cached(other, READ) == "kept when it is asked for"
        assert cached(w, READ) == "answered from the cache"


@pytest.mark.parametrize("params", [{"options": "-S 1024"}, {"replication": "database"}])
def test_explain_of_a_session_that_nobody_looks_at(pg, pool, params):
    """Its settings are not known, and so no key of a result of it: the worker, which serves others, goes on."""
    with login(pool, **params) as w, login(pool) as other:
        pid = other.rows("show pool_processes")[0][0]
        assert cached(w, READ) == "not now: nobody looks at what the session runs"
        assert other.rows("show pool_processes")[0][0] == pid
        assert cached(other, READ) == "not known yet"
