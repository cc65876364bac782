// SPDX-License-Identifier: PostgreSQL
// JdbcMore: what PgJDBC does that others do not: batches rewritten into one INSERT, batches that fail, keys of new rows, results that
// can be updated, large objects, COPY to the client, tables that change under its statements, cancel() by another thread, notifications.
import java.io.StringWriter;
import java.sql.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.largeobject.*;

class JdbcMore {
    private final Connection c;
    private final int i;
    private final boolean isSimple;
    private final boolean saves;

    JdbcMore(Connection c, int i, boolean isSimple, boolean saves) {
        this.c = c;
        this.i = i;
        this.isSimple = isSimple;
        this.saves = saves;
    }

    static String state(SQLException e) {
        return e.getSQLState();
    }

    int count(String where) throws SQLException {
        try (PreparedStatement p = c.prepareStatement("select count(*) from drv_jdbc where client = ? and " + where)) {
            p.setInt(1, i);
            try (ResultSet r = p.executeQuery()) {
                r.next();
                return r.getInt(1);
            }
        }
    }

    void batches() throws SQLException {
        c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        c.setAutoCommit(false);
        try (PreparedStatement p = c.prepareStatement("insert into drv_jdbc values (?, ?)")) {
            for (int n : new int[] {200, 201, 202, 201, 203}) {
                p.setInt(1, i);
                p.setInt(2, n);
                p.addBatch();
            }
            try {
                p.executeBatch();
                JdbcClients.expect(false, "a doubled row in a batch");
            } catch (BatchUpdateException e) {
                JdbcClients.expect("23505".equals(state(e)), "client " + i + ": " + e);
            }
            c.rollback();
            JdbcClients.expect(count("n between 200 and 299") == 0, "a failed batch left rows");
            for (int n = 300; n < 700; n++) {
                p.setInt(1, i);
                p.setInt(2, n);
                p.addBatch();
            }
            p.executeBatch();
        }
        c.commit();
        JdbcClients.expect(count("n between 300 and 699") == 400, "a long batch");
        try (PreparedStatement p = c.prepareStatement("insert into drv_jdbc values (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int n = 700; n < 710; n++) {
                p.setInt(1, i);
                p.setInt(2, n);
                p.addBatch();
            }
            p.executeBatch();
            int sum = 0;
            try (ResultSet r = p.getGeneratedKeys()) {
                while (r.next()) sum += r.getInt("n");
            }
            JdbcClients.expect(sum == 7045, "client " + i + ", generated keys: " + sum);
        }
        c.rollback();
    }

    /** Portals side by side, read in parts by turns; scrolling; more statements than are kept. */
    void results() throws SQLException {
        try (Statement a = c.createStatement(); Statement b = c.createStatement()) {
            a.setFetchSize(5);
            b.setFetchSize(3);
            int sum = 0;
            try (ResultSet x = a.executeQuery("select n from drv_jdbc where client = " + i + " and n between 300 and 339 order by n");
                 ResultSet y = b.executeQuery("select generate_series(1, 40)")) {
                while (x.next() && y.next()) sum += x.getInt(1) - y.getInt(1);
            }
            JdbcClients.expect(sum == 40 * 299, "client " + i + ", two portals: " + sum);
            b.setFetchSize(0);
            b.setMaxRows(7);
            try (ResultSet y = b.executeQuery("select generate_series(1, 100)")) {
                while (y.next()) sum++;
            }
            JdbcClients.expect(sum == 40 * 299 + 7 || i % 2 == 1, "client " + i + ", setMaxRows: " + (sum - 40 * 299));
        }
        c.commit();
        for (int n = 0; n < 40; n++) {
            try (PreparedStatement p = c.prepareStatement("select ?::int + " + n % 20)) {
                p.setInt(1, i);
                try (ResultSet r = p.executeQuery()) {
                    JdbcClients.expect(r.next() && r.getInt(1) == i + n % 20, "many statements");
                }
            }
        }
        c.commit();
    }

    void largeObject() throws SQLException {
        LargeObjectManager all = c.unwrap(PGConnection.class).getLargeObjectAPI();
        long id = all.createLO(LargeObjectManager.READWRITE);
        try (LargeObject o = all.open(id, LargeObjectManager.WRITE)) {
            o.write(new byte[] {(byte) i, 1, 2});
        }
        c.commit();
        try (LargeObject o = all.open(id, LargeObjectManager.READ)) {
            JdbcClients.expect(Arrays.equals(o.read(10), new byte[] {(byte) i, 1, 2}), "a large object");
        }
        if (System.getenv("PGT_KEEP_OBJECTS") == null) all.delete(id);
        c.commit();
    }

    /** At most one error, and none that lasts. */
    void changingTable() throws SQLException {
        String table = "drv_jdbc_ddl_" + i;
        c.setAutoCommit(true);
        try (Statement s = c.createStatement()) {
            s.execute("drop table if exists " + table + "; create table " + table + " as select 1 as a");
        }
        try (PreparedStatement p = c.prepareStatement("select * from " + table)) {
            for (int columns = 1; columns < 4; columns++) {
                for (int n = 0; n < 4; n++) {
                    try (ResultSet r = p.executeQuery()) {
                        JdbcClients.expect(r.next(), "a row");
                        JdbcClients.expect(r.getMetaData().getColumnCount() == columns, "client " + i + ": columns");
                    } catch (SQLException e) {
                        JdbcClients.expect(n == 0 && "0A000".equals(state(e)), "client " + i + ", a changed table: " + e);
                    }
                }
                try (Statement s = c.createStatement()) {
                    s.execute("alter table " + table + " add column c" + columns + " int");
                }
            }
        }
        changedInTransaction(table);
        try (Statement s = c.createStatement()) {
            s.execute("drop table " + table);
        }
    }

    /** With savepoints of its own the driver tries again unseen; without them the transaction has failed, and the next one is right. */
    void changedInTransaction(String table) throws SQLException {
        c.setAutoCommit(false);
        try (PreparedStatement p = c.prepareStatement("select * from " + table + " as t"); Statement s = c.createStatement()) {
            for (int columns = 4; columns < 7; columns++) {
                for (int n = 0; n < 4; n++) {
                    s.execute("select 1");
                    try (ResultSet r = p.executeQuery()) {
                        JdbcClients.expect(r.next() && r.getMetaData().getColumnCount() == columns, "client " + i + ": columns");
                        c.commit();
                    } catch (SQLException e) {
                        JdbcClients.expect(n == 0 && !saves && "0A000".equals(state(e)), "client " + i + ", in a transaction: " + e);
                        c.rollback();
                    }
                }
                s.execute("alter table " + table + " add column c" + columns + " int");
                c.commit();
            }
        }
        c.setAutoCommit(true);
    }

    void rest() throws Exception {
        c.setAutoCommit(true);
        StringWriter out = new StringWriter();
        c.unwrap(PGConnection.class).getCopyAPI().copyOut("copy (select g * " + i + " from generate_series(1, 3) g) to stdout", out);
        JdbcClients.expect(out.toString().equals(i + "\n" + 2 * i + "\n" + 3 * i + "\n"), "COPY: " + out);
        c.setAutoCommit(false);
        c.setReadOnly(true);
        try (Statement s = c.createStatement()) {
            s.execute("insert into drv_jdbc values (" + i + ", 800)");
            JdbcClients.expect(false, "a write in a read-only transaction");
        } catch (SQLException e) {
            JdbcClients.expect("25006".equals(state(e)), e.toString());
        }
        c.rollback();
        c.setReadOnly(false);
        c.setAutoCommit(true);
        c.setSchema("pg_catalog");
        JdbcClients.expect("pg_catalog".equals(c.getSchema()), "the schema");
        c.setSchema("public");
    }

    /** By another thread; all clients at once, most of which wait for a link. */
    void cancelled() throws Exception {
        try (Statement s = c.createStatement()) {
            Timer timer = new Timer(true);
            timer.schedule(new TimerTask() {
                public void run() {
                    try {
                        s.cancel();
                    } catch (SQLException e) {
                        throw new RuntimeException(e);
                    }
                }
            }, 100);
            try {
                s.execute("select pg_sleep(20)");
                JdbcClients.expect(false, "client " + i + " slept");
            } catch (SQLException e) {
                JdbcClients.expect("57014".equals(state(e)), e.toString());
            }
            timer.cancel();
            try (ResultSet r = s.executeQuery("select " + i)) {
                JdbcClients.expect(r.next() && r.getInt(1) == i, "behind a cancel");
            }
        }
    }

    static void run(Connection c, int i, String mode, boolean saves) throws Exception {
        JdbcMore it = new JdbcMore(c, i, mode.equals("simple"), saves);
        it.batches();
        if (!it.isSimple) it.results();
        it.largeObject();
        it.changingTable();
        it.rest();
        it.cancelled();
    }

    static void notifications(String url, Properties p) throws Exception {
        try (Connection a = DriverManager.getConnection(url, p); Connection b = DriverManager.getConnection(url, p);
             Statement listen = a.createStatement(); Statement tell = b.createStatement()) {
            listen.execute("listen drv_jdbc_told");
            tell.execute("notify drv_jdbc_told, 'hello'");
            var got = a.unwrap(PGConnection.class).getNotifications(10_000);
            JdbcClients.expect(got != null && got.length == 1 && got[0].getParameter().equals("hello"), "a notification");
            listen.execute("unlisten *");
        }
    }
}
