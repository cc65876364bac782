# SPDX-License-Identifier: PostgreSQL
# rails_clients.rb HOST PORT CLIENTS: ActiveRecord, the database layer of Rails, as an application uses it: a migration
# under its advisory lock, then a thread per client with a connection of its own. Prints "ok CLIENTS" at the end.
# Makes and fills the table drv_rails; twice, with prepared statements and without.
require "active_record"

HOST, PORT, CLIENTS = ARGV[0], ARGV[1].to_i, ARGV[2].to_i
ROUNDS = 6
ActiveRecord::Base.logger = nil
ActiveRecord::Migration.verbose = false

class DrvRails < ActiveRecord::Base
  self.table_name = "drv_rails_rows"
  self.locking_column = :version
end

class MakeTable < ActiveRecord::Migration[6.1]
  def up
    drop_table :drv_rails_rows, if_exists: true
    create_table :drv_rails_rows do |t|
      t.integer :client
      t.integer :n
      t.string :words
      t.integer :version, default: 0
    end
    add_index :drv_rails_rows, %i[client n], unique: true
  end
end

def connect(prepared)
  ActiveRecord::Base.establish_connection(
    adapter: "postgresql", host: HOST, port: PORT, username: "postgres", database: "postgres", password: "x",
    pool: CLIENTS, checkout_timeout: 60, prepared_statements: prepared, variables: { statement_timeout: 59_000 }
  )
end

def check(what, got, wanted)
  raise "#{what}: #{got.inspect}, not #{wanted.inspect}" unless got == wanted
end

def migrate
  schema = ActiveRecord::Base.connection.schema_migration
  schema.create_table
  migration = MakeTable.new("MakeTable", Process.clock_gettime(Process::CLOCK_REALTIME, :microsecond))
  ActiveRecord::Migrator.new(:up, [migration], schema).migrate
  DrvRails.reset_column_information
end

def one_round(client, n)
  DrvRails.transaction do
    DrvRails.create!(client: client, n: n, words: "#{client}/#{n}")
    begin
      DrvRails.transaction(requires_new: true) { DrvRails.create!(client: client, n: n) }
      raise "a doubled row was taken"
    rescue ActiveRecord::RecordNotUnique
      check "in the transaction", DrvRails.find_by!(client: client, n: n).words, "#{client}/#{n}"
    end
    raise ActiveRecord::Rollback if n.odd?
  end
  check "rows", DrvRails.where(client: client, n: n).count, n.even? ? 1 : 0
end

def stale_row(client)
  first = DrvRails.find_by!(client: client, n: 0)
  second = DrvRails.find(first.id)
  first.update!(words: "changed")
  second.update!(words: "changed too")
  raise "a stale row was written"
rescue ActiveRecord::StaleObjectError
  check "the winner", DrvRails.find_by!(client: client, n: 0).words, "changed"
end

def work(client)
  base = DrvRails.connection
  base.execute("set time zone '#{client.even? ? 'Asia/Tokyo' : 'Europe/Paris'}'")
  ROUNDS.times { |n| one_round(client, n) }
  stale_row(client)
  DrvRails.insert_all((100...130).map { |n| { client: client, n: n, words: "many" } })
  DrvRails.upsert_all([{ client: client, n: 100, words: "upserted" }], unique_by: %i[client n])
  check "batches", DrvRails.where(client: client, words: "many").find_each(batch_size: 7).map(&:n).sort, (101...130).to_a
  check "pluck", DrvRails.where(client: client).where("n >= ?", 128).order(:n).pluck(:n), [128, 129]
  check "locked", DrvRails.transaction { DrvRails.lock.find_by!(client: client, n: 100).words }, "upserted"
  check "time zone", base.select_value("show timezone"), client.even? ? "Asia/Tokyo" : "Europe/Paris"
  check "statement_timeout", base.select_value("show statement_timeout"), "59s"
end

def everybody(prepared)
  connect(prepared)
  migrate
  threads = Array.new(CLIENTS) do |i|
    Thread.new { ActiveRecord::Base.connection_pool.with_connection { work(i) } }
  end
  threads.each(&:join)
  check "all rows", DrvRails.count, CLIENTS * (ROUNDS / 2 + 30)
  ActiveRecord::Base.connection.execute("insert into drv_rails select client, n + #{prepared ? 0 : 1000} from drv_rails_rows")
  ActiveRecord::Base.connection_pool.disconnect!
end

Thread.abort_on_exception = false
Thread.report_on_exception = false
everybody(true)
everybody(false)
puts "ok #{CLIENTS}"
