// SPDX-License-Identifier: PostgreSQL
// JdbcClients: PgJDBC in its ordinary use, many clients at once: server-side statements, autosave, fetch sizes,
// batches, savepoints, COPY, each query mode. Usage: JdbcClients HOST PORT CLIENTS
import java.io.StringReader;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import org.postgresql.PGConnection;

public class JdbcClients {
    static final String[] MODES = {"extended", "extendedForPrepared", "extendedCacheEverything", "simple"};
    static final String[] AUTOSAVE = {"never", "always", "conservative"};

    static void expect(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
    }

    static void transactions(Connection c, int i, boolean saves) throws SQLException {
        c.setAutoCommit(false);
        try (PreparedStatement insert = c.prepareStatement("insert into drv_jdbc values (?, ?)");
             PreparedStatement count = c.prepareStatement("select count(*) from drv_jdbc where client = ?")) {
            for (int n = 0; n < 12; n++) {
                insert.setInt(1, i);
                insert.setInt(2, n);
                insert.executeUpdate();
                Savepoint sp = saves ? null : c.setSavepoint();
                try {
                    insert.executeUpdate();
                    expect(false, "doubled");
                } catch (SQLException e) {
                    expect("23505".equals(e.getSQLState()), "client " + i + ": " + e);
                    if (sp != null) c.rollback(sp);
                }
                count.setInt(1, i);
                try (ResultSet r = count.executeQuery()) {
                    expect(r.next() && r.getInt(1) == (n + 1) / 2 + 1, "client " + i + " round " + n + ": " + r.getInt(1));
                }
                if (n % 2 == 0) c.commit(); else c.rollback();
            }
        }
    }

    static void rest(Connection c, int i) throws Exception {
        try (PreparedStatement p = c.prepareStatement("select g from generate_series(1, 57) g where g > ?")) {
            p.setFetchSize(10);
            p.setInt(1, 0);
            try (ResultSet r = p.executeQuery()) {
                int sum = 0;
                while (r.next()) sum += r.getInt(1);
                expect(sum == 57 * 58 / 2, "cursor");
            }
        }
        c.commit();
        try (PreparedStatement p = c.prepareStatement("insert into drv_jdbc values (?, ?)")) {
            for (int n = 100; n < 150; n++) {
                p.setInt(1, i);
                p.setInt(2, n);
                p.addBatch();
            }
            expect(p.executeBatch().length == 50, "batch");
        }
        c.commit();
        c.setAutoCommit(true);
        c.unwrap(PGConnection.class).getCopyAPI().copyIn("copy drv_jdbc from stdin", new StringReader(i + "\t999\n"));
        c.setReadOnly(true);
        c.setReadOnly(false);
        c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        try (Statement s = c.createStatement()) {
            try (ResultSet r = s.executeQuery("show transaction_isolation")) {
                expect(r.next() && r.getString(1).equals("serializable"), "isolation");
            }
            s.execute("set application_name = 'jdbc " + i + "'");
            for (int n = 0; n < 6; n++) {
                try (ResultSet r = s.executeQuery("show application_name")) {
                    expect(r.next() && r.getString(1).equals("jdbc " + i), "application_name");
                }
            }
            s.setQueryTimeout(1);
            if (i == 0) {
                try {
                    s.execute("select pg_sleep(30)");
                    expect(false, "no time-out");
                } catch (SQLException e) {
                    expect("57014".equals(e.getSQLState()), e.toString());
                }
            }
        }
        expect(c.getMetaData().getTables(null, "public", "drv_jdbc", null).next() && c.isValid(5), "metadata");
    }

    static Void client(String host, String port, int i) throws Exception {
        Properties p = new Properties();
        p.setProperty("user", "postgres");
        p.setProperty("preferQueryMode", MODES[i % 4]);
        p.setProperty("autosave", AUTOSAVE[i % 3]);
        p.setProperty("reWriteBatchedInserts", String.valueOf(i % 2 == 0));
        p.setProperty("preparedStatementCacheQueries", String.valueOf(i % 7 == 0 ? 5 : 256));
        p.setProperty("adaptiveFetch", String.valueOf(i % 6 == 5));
        p.setProperty("targetServerType", i % 4 == 3 ? "primary" : "any");
        p.setProperty("prepareThreshold", String.valueOf(i % 5 == 0 ? -1 : i % 5));
        try (Connection c = DriverManager.getConnection("jdbc:postgresql://" + host + ":" + port + "/postgres", p)) {
            transactions(c, i, i % 3 == 1);
            rest(c, i);
            JdbcMore.run(c, i, MODES[i % 4], i % 3 > 0);
        }
        return null;
    }

    static Thread daemon(Runnable work) {
        Thread t = new Thread(work);
        t.setDaemon(true);
        return t;
    }

    public static void main(String[] args) throws Exception {
        int clients = Integer.parseInt(args[2]);
        ExecutorService pool = Executors.newFixedThreadPool(clients, JdbcClients::daemon);
        List<Future<Void>> all = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            final int number = i;
            all.add(pool.submit(() -> client(args[0], args[1], number)));
        }
        for (Future<Void> f : all) f.get(90, TimeUnit.SECONDS);
        Properties user = new Properties();
        user.setProperty("user", "postgres");
        JdbcMore.notifications("jdbc:postgresql://" + args[0] + ":" + args[1] + "/postgres", user);
        pool.shutdown();
        System.out.println("ok " + clients);
    }
}
