// SPDX-License-Identifier: PostgreSQL
// words.js: what the console says, in English and Japanese: word: [English, Japanese].
"use strict";

const WORDS = {
  skip: ["To the content", "本文へ"],
  now: ["Now", "現在"], servers: ["Servers", "サーバー"], pools: ["Pools", "プール"], clients: ["Clients", "クライアント"],
  events: ["Events", "イベント"], settings: ["Settings", "設定"],
  login: ["Log in", "ログイン"], logout: ["Log out", "ログアウト"], user: ["User", "ユーザー"], password: ["Password", "パスワード"],
  loginText: ["With a user of pcp.conf.", "pcp.conf のユーザーでログインしてください。"],
  wrong: ["Wrong user or password.", "ユーザー名またはパスワードが違います。"],
  slower: ["Too many wrong passwords. Wait for a minute.", "失敗が続いたため、1 分ほど待ってください。"],
  gone: ["Pgpool does not answer. Still trying …", "pgpool が応答しません。再試行しています…"],
  operator: ["Operator", "運用者"], viewer: ["Viewer", "閲覧者"], language: ["日本語", "English"],
  other: ["And further:", "ほかに:"],
  otherStatements: ["Other", "その他"],
  waiting: ["Waiting", "待機中"], links: ["Server connections", "サーバー接続"], perSecond: ["Statements / s", "文 / 秒"],
  txPerSecond: ["Transactions / s", "トランザクション / 秒"], mean: ["Mean time", "平均時間"], ms: ["ms", "ミリ秒"],
  hour: ["1 hour", "1 時間"], minutes: ["10 minutes", "10 分"], day: ["1 day", "1 日"],
  chartClients: ["Clients", "クライアント"], chartWork: ["Work per second", "1 秒あたりの処理"],
  chartTime: ["Time per request, and of waiting (ms)", "要求の時間と待ち時間 (ミリ秒)"], chartNodes: ["Statements per server and second", "サーバーごとの文 / 秒"],
  nodeTimes: ["How long they took to answer", "応答時間"], requests: ["Requests", "要求"],
  chartNodeTime: ["Time per request on each server (ms)", "サーバーごとの要求の時間 (ミリ秒)"],
  chartLag: ["Lag of standbys (bytes)", "スタンバイの遅れ (バイト)"],
  statements: ["Statements", "文"], transactions: ["Transactions", "トランザクション"], request: ["Request", "要求"], wait: ["Waiting", "待ち"],
  node: ["Server", "サーバー"], primary: ["Primary", "プライマリ"], standby: ["Standby", "スタンバイ"], unknown: ["Unknown", "不明"], main: ["Main", "メイン"], replica: ["Replica", "レプリカ"],
  up: ["Up", "稼働"], down: ["Down", "停止"], quarantine: ["Quarantine", "隔離"], unused: ["Unused", "未使用"], waitingState: ["Not asked yet", "未確認"],
  lag: ["Lag", "遅れ"], reads: ["Share of reads", "読み取りの割合"], sync: ["Sync state", "同期状態"], since: ["Since", "変更日時"], status: ["Status", "状態"],
  role: ["Role", "役割"], select: ["Reads", "読み取り"], address: ["Address", "アドレス"],
  watchdog: ["Watchdog", "ウォッチドッグ"], quorum: ["Quorum", "クォーラム"], sharedAddress: ["Shared address", "共有アドレス"],
  attach: ["Attach", "アタッチ"], detach: ["Detach", "デタッチ"], promote: ["Make primary", "プライマリにする"],
  askAttach: ["Use server {} again?", "サーバー {} を再び使いますか?"],
  askDetach: ["Take server {} out? Sessions on it end. It stays away until somebody attaches it.", "サーバー {} を切り離しますか? 使用中のセッションは切断され、attach するまで戻りません。"],
  askPromote: ["Make server {} the primary? Writes wait meanwhile, and the other servers follow it.", "サーバー {} をプライマリにしますか? その間書き込みは待たされ、ほかのサーバーは新しいプライマリに従います。"],
  askKill: ["Send client {} away? Its transaction is rolled back.", "クライアント {} を切断しますか? トランザクションは取り消されます。"],
  askCancel: ["Cancel what client {} runs?", "クライアント {} が実行中の文をキャンセルしますか?"],
  askReload: ["Read pgpool.conf again?", "pgpool.conf を再読み込みしますか?"],
  why: ["Reason, for the events (may be empty)", "理由 (イベントに記録、省略可)"], no: ["No", "いいえ"],
  ordered: ["Ordered. Events tell what came of it.", "指示しました。結果はイベントで確認できます。"],
  kill: ["Kill", "切断"], cancel: ["Cancel", "キャンセル"], reload: ["Reload", "再読み込み"],
  filter: ["Filter: user, database, state, address, statement …", "絞り込み: ユーザー、データベース、状態、アドレス、文…"],
  ofAll: ["{} of {}", "{} / {}"], nothing: ["Nothing.", "ありません。"], nobodyWaits: ["Nobody waits.", "待っているクライアントはありません。"],
  whoWaits: ["Who waits, and for what", "待っているクライアントとその理由"], limits: ["Limits", "制限"], perDatabase: ["Per database", "データベース別"], pins: ["Who keeps a server connection, and why", "接続を保持しているクライアントとその理由"],
  database: ["Database", "データベース"], reason: ["Reason", "理由"], longest: ["Longest", "最長"], name: ["Name", "名前"], used: ["Used", "使用"], limit: ["Limit", "上限"], none: ["None", "なし"],
  state: ["State", "状態"], application: ["Application", "アプリケーション"], host: ["From", "接続元"], statement: ["Statement", "文"], id: ["Id", "番号"], pin: ["Keeps its connection: ", "接続保持: "],
  queries: ["Statements", "文"], logins: ["Logins", "ログイン"], p50: ["Median", "中央値"], p99: ["99 %", "99 %"], waitP99: ["Wait 99 %", "待ち 99 %"], total: ["Total", "累計"],
  time: ["Time", "日時"], event: ["Event", "イベント"], what: ["What happened", "内容"], actor: ["By", "実行者"],
  value: ["Value", "値"], preset: ["Default", "既定値"], takenUp: ["A change needs", "変更の反映"], restart: ["Restart", "再起動"], reloadWord: ["Reload", "再読み込み"], session: ["Reload", "再読み込み"],
  onlyChanged: ["Only changed ones", "変更したものだけ"], all: ["All", "すべて"], file: ["File", "ファイル"], description: ["Description", "説明"],
  recover: ["Rebuild", "再構築"], askRecover: ["Rebuild server {} as a copy of the primary (online recovery)? What is in its data folder and not on the primary is lost.", "サーバー {} をプライマリのコピーとして再構築 (オンラインリカバリ) しますか? プライマリにないデータは失われます。"],
  recoveries: ["Online recovery", "オンラインリカバリ"], step: ["Step", "段階"], copiedFrom: ["Copy of", "コピー元"], begun: ["Begun", "開始"], ended: ["Ended", "終了"],
  succeeded: ["Succeeded", "成功"], failed: ["Failed", "失敗"],
  watchdogEvents: ["What the pgpools agreed on", "pgpool 間の合意"], thisOne: ["this one", "この pgpool"], priority: ["Priority", "優先度"], vote: ["Vote", "投票権"], witness: ["Witness", "立会人"],
  heard: ["Last heard", "最終応答"], leaderSince: ["Leads since", "リーダー就任"], lease: ["Lease left", "リース残り"], lostServers: ["Does not reach", "到達不能"],
  cache: ["Cache", "キャッシュ"], cacheOff: ["The query cache is off (memory_cache_enabled).", "クエリキャッシュは無効です (memory_cache_enabled)。"], perTable: ["By table", "テーブル別"],
  schema: ["Schema", "スキーマ"], table: ["Table", "テーブル"], results: ["Results", "結果"], memory: ["Memory", "メモリ"], memoryOf: ["Memory, of {}", "メモリ ({} 中)"], hitRatio: ["Hit ratio", "ヒット率"],
  hits: ["Hits", "ヒット"], misses: ["Misses", "ミス"], notKept: ["Not kept", "不保持"], madeInvalid: ["Made invalid", "無効化"], lastWrite: ["Last write", "最終書き込み"], writer: ["Seen by", "検知元"],
  filterTables: ["Filter: database, schema, table …", "絞り込み: データベース、スキーマ、テーブル…"], cacheStreams: ["Whether all writes are seen", "書き込みの追跡状況"],
  whereSet: ["Set at", "設定箇所"],
  log: ["Log", "ログ"], calls: ["Calls", "回数"], meanTime: ["Mean", "平均"], share: ["Of all time", "時間の割合"], rowsEach: ["Rows each", "行数 / 回"], errors: ["Errors", "エラー"], cacheHits: ["From the cache", "キャッシュ"],
  filterQueries: ["Filter: text, database, fingerprint …", "絞り込み: 文、データベース、指紋…"], filterLog: ["Filter", "絞り込み"],
  forget: ["Begin anew", "リセット"], askForget: ["Forget the figures of all statements?", "すべての文の統計を消去しますか?"],
  logForOperators: ["The log is for operators (http_operators).", "ログを閲覧できるのは運用者 (http_operators) のみです。"],
  logElsewhere: ["logging_collector is off: the log is where pgpool's standard error goes (journalctl -u pgpool), or in syslog.", "logging_collector が無効です。ログは標準エラー出力 (journalctl -u pgpool) または syslog にあります。"],
  statementsOff: ["track_statements is off: nothing is counted. Set it in pgpool.conf, and reload.", "track_statements が off のため集計していません。pgpool.conf で設定し、再読み込みしてください。"],
  reports: ["All reports", "全レポート"], serverPid: ["Server process", "サーバープロセス"], ofClient: ["Client", "クライアント"], uses: ["Times lent", "貸出回数"],
  logEmpty: ["There is no log file yet.", "ログファイルはまだありません。"],
  orders: ["Pause, drain, reconnect", "一時停止・切断・再接続"], allDatabases: ["All databases", "全データベース"], paused: ["Paused", "一時停止中"], draining: ["Draining", "切断中"], running: ["Running", "通常"],
  reconnectedAt: ["Connections replaced", "接続の更新"],
  pause: ["Pause", "一時停止"], drain: ["Drain", "切断"], resume: ["Resume", "再開"], reconnect: ["Reconnect", "再接続"],
  askPause: ["Pause {}? Server connections are closed as they become free, and clients wait until somebody resumes.", "{} を一時停止しますか? 空いたサーバー接続から閉じられ、再開するまでクライアントは待たされます。"],
  askDrain: ["Drain {}? New clients are refused, and those that are here leave between two transactions.", "{} を切断しますか? 新しい接続は断られ、接続中のクライアントはトランザクションの切れ目で切断されます。"],
  askResume: ["Resume {}?", "{} を再開しますか?"],
  askReconnect: ["Open the server connections of {} anew? Each is replaced when it is free.", "{} のサーバー接続を張り直しますか? 空いたものから順に置き換えられます。"],
  pin_session_mode: ["In session mode it keeps it until it leaves.", "セッションモードでは切断まで保持します。"],
  pin_temporary_table: ["Its temporary tables live there: DISCARD TEMP, or DROP them.", "一時テーブルがあるためです。DISCARD TEMP または DROP で解放されます。"],
  pin_listen: ["It listens: UNLISTEN *.", "LISTEN 中です。UNLISTEN * で解放されます。"],
  pin_advisory_lock: ["It holds a session lock: pg_advisory_unlock_all().", "アドバイザリロックを保持しています。pg_advisory_unlock_all() で解放されます。"],
  pin_cursor_with_hold: ["A cursor WITH HOLD is open: CLOSE it.", "WITH HOLD カーソルが開いています。CLOSE で解放されます。"],
  pin_load: ["It loaded a library: until it leaves, or DISCARD ALL.", "LOAD を実行しました。切断または DISCARD ALL まで保持します。"],
  pin_setting: ["It changed a setting in a way that cannot be repeated: DISCARD ALL.", "再現できない方法で設定を変更しました。DISCARD ALL で解放されます。"],
  pin_prepared_statement: ["It prepared a statement that cannot be made elsewhere: DEALLOCATE ALL.", "他の接続で再現できない文を PREPARE しました。DEALLOCATE ALL で解放されます。"],
  pin_replication: ["It is a replication connection.", "レプリケーション接続です。"],
  pin_session_state: ["What it ran could not be followed: DISCARD ALL.", "実行内容を追跡できませんでした。DISCARD ALL で解放されます。"],
  viewersOnly: ["You can look; http_operators names who may order.", "閲覧のみです。操作できるのは http_operators のユーザーです。"],
};

const language = {
  index: 0,
  set(i) {
    this.index = i;
    document.documentElement.lang = i === 1 ? "ja" : "en";
    try { localStorage.setItem("language", String(i)); } catch { /* private windows */ }
  },
  start() {
    let kept = null;
    try { kept = localStorage.getItem("language"); } catch { /* private windows */ }
    this.set(kept === null ? Number((navigator.language || "").startsWith("ja")) : Number(kept));
  },
};

function word(name, ...args) {
  const texts = WORDS[name];
  let text = texts === undefined ? name : texts[language.index];
  for (const arg of args) text = text.replace("{}", arg);
  return text;
}
