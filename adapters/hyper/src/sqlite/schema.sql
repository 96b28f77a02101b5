-- Times are milliseconds since the Unix epoch. Bodies are large, so keys live in indexes of their own.

CREATE TABLE task (
  key     TEXT NOT NULL UNIQUE,
  owner   TEXT NOT NULL,
  version INTEGER NOT NULL,
  is_open INTEGER NOT NULL,
  due     INTEGER,
  expires INTEGER NOT NULL,
  body    BLOB NOT NULL
) STRICT;

CREATE INDEX task_due ON task (due) WHERE is_open = 1 AND due IS NOT NULL;
CREATE INDEX task_open ON task (owner, expires) WHERE is_open = 1;
CREATE INDEX task_expires ON task (expires);

CREATE TABLE message (
  id      TEXT NOT NULL UNIQUE,
  expires INTEGER NOT NULL,
  message BLOB -- NULL once taken
) STRICT;

CREATE INDEX message_expires ON message (expires);

CREATE TABLE spent (
  id      TEXT NOT NULL PRIMARY KEY,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX spent_expires ON spent (expires);

-- AUTOINCREMENT: no id is used twice, also when all rows before it are gone.
CREATE TABLE change (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  created INTEGER NOT NULL,
  tenant  TEXT,
  change  TEXT NOT NULL -- JSON
) STRICT;
