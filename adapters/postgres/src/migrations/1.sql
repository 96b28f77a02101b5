-- Times are milliseconds since the Unix epoch, told by the instances. Names carry no schema: the
-- session's search_path does. Keys compare byte by byte, whatever the database's language.

CREATE TABLE tasks (
    key text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    is_open boolean NOT NULL,
    due bigint,
    expires bigint NOT NULL,
    body bytea NOT NULL
);
CREATE INDEX tasks_open ON tasks (owner, expires) WHERE is_open;
CREATE INDEX tasks_due ON tasks (due) WHERE is_open AND due IS NOT NULL;
CREATE INDEX tasks_expires ON tasks (expires);

-- Answers 'created', 'exists' or 'too many'. Each statement in here sees what was committed before it
-- began, so once the owner's lock is taken, the count is exact.
CREATE FUNCTION create_task(
    new_key text,
    new_owner text,
    new_is_open boolean,
    new_due bigint,
    new_expires bigint,
    new_body bytea,
    max_open bigint,
    now_millis bigint
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    -- The first number keeps clear of the application's own locks.
    PERFORM pg_advisory_xact_lock(1296257617, hashtext(new_owner));
    IF EXISTS (SELECT FROM tasks WHERE key = new_key) THEN
        RETURN 'exists';
    END IF;
    IF max_open <= (
        SELECT count(*) FROM tasks WHERE owner = new_owner AND is_open AND expires > now_millis
    ) THEN
        RETURN 'too many';
    END IF;
    INSERT INTO tasks (key, owner, version, is_open, due, expires, body)
        VALUES (new_key, new_owner, 1, new_is_open, new_due, new_expires, new_body)
        ON CONFLICT (key) DO NOTHING;
    RETURN CASE WHEN FOUND THEN 'created' ELSE 'exists' END;
END
$$;

-- Ids are SHA-256 digests. A message that was taken leaves its row, without the message, until it expires.
CREATE TABLE messages (
    id bytea PRIMARY KEY,
    message bytea,
    expires bigint NOT NULL
);
CREATE INDEX messages_expires ON messages (expires);

CREATE TABLE spent (
    id bytea PRIMARY KEY,
    expires bigint NOT NULL
);
CREATE INDEX spent_expires ON spent (expires);

-- Changes that do not fit into a notification, which names the row instead. By the database's clock.
CREATE TABLE large_changes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    change text NOT NULL,
    made timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX large_changes_made ON large_changes (made);
