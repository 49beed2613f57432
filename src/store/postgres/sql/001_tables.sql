-- Runs, their lines, answers, documents and what a team allows. Rows are read under row-level security (002) and written by
-- functions alone (003 to 005). Numbered files are never edited once they are released: what changes is a new file.

CREATE SCHEMA nietz;

-- What was done to this schema, and the lowest number that a program must know to work with it.
CREATE TABLE nietz.migration (
    number int PRIMARY KEY,
    name text NOT NULL,
    oldest int NOT NULL,
    by text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);

-- The queue that is used: its version, and whether it is an extension or the script beside this file.
CREATE TABLE nietz.engine (
    name text PRIMARY KEY,
    version text NOT NULL,
    way text NOT NULL CHECK (way IN ('extension', 'script'))
);

-- Whoever knows the channel's name can listen to it, so it is no name that can be guessed.
CREATE TABLE nietz.workspace (
    id int PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL UNIQUE CHECK (name <> '' AND length(name) <= 100),
    channel text NOT NULL DEFAULT 'nietz_' || replace(gen_random_uuid()::text, '-', ''),
    at timestamptz NOT NULL DEFAULT now()
);

-- What a role of Postgres, and every role that is a member of it, may do in a workspace.
CREATE TABLE nietz.member (
    workspace int NOT NULL REFERENCES nietz.workspace,
    role name NOT NULL,
    kind text NOT NULL CHECK (kind IN ('asker', 'worker', 'reader')),
    signs boolean NOT NULL DEFAULT false,
    PRIMARY KEY (workspace, role, kind)
);

-- Each time a worker takes a run it gets the next number: an older one writes no line any more.
CREATE SEQUENCE nietz.claims AS bigint;

CREATE TABLE nietz.run (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    workspace int NOT NULL REFERENCES nietz.workspace,
    name text NOT NULL CHECK (name <> '' AND length(name) <= 100),
    flow text NOT NULL,
    status text NOT NULL
        CHECK (status IN ('queued', 'running', 'waiting', 'stopped', 'stuck', 'done', 'failed', 'cancelled')),
    tag text NOT NULL DEFAULT '',
    queue text NOT NULL,
    -- The one message that the queue may have of this run.
    message bigint,
    claim bigint NOT NULL DEFAULT 0,
    claimed_by name,
    worker text,
    parent bigint REFERENCES nietz.run,
    awaits bigint[] NOT NULL DEFAULT '{}',
    questions jsonb NOT NULL DEFAULT '[]',
    summary jsonb NOT NULL DEFAULT '{}',
    began_by name NOT NULL DEFAULT session_user,
    began_as text NOT NULL DEFAULT '',
    began timestamptz NOT NULL DEFAULT now(),
    changed timestamptz NOT NULL DEFAULT now(),
    waiting_since timestamptz,
    -- When it goes on by itself.
    wake timestamptz,
    UNIQUE (workspace, name),
    -- What waits or is over is not in the queue, unless a time was set.
    CHECK (message IS NULL OR status IN ('queued', 'running') OR status = 'waiting' AND wake IS NOT NULL),
    CHECK (message IS NOT NULL OR status NOT IN ('queued', 'running'))
);
CREATE INDEX run_inbox ON nietz.run (workspace, waiting_since) WHERE status IN ('waiting', 'stuck');
CREATE INDEX run_children ON nietz.run (parent) WHERE parent IS NOT NULL;

-- The journal. The primary key is the fence: no two workers can both have written one line of a run.
CREATE TABLE nietz.line (
    run bigint NOT NULL,
    seq bigint NOT NULL CHECK (seq > 0),
    body text NOT NULL,
    claim bigint NOT NULL,
    PRIMARY KEY (run, seq)
);

-- The key is that of the question's effect, so that an answer answers one question.
CREATE TABLE nietz.answer (
    run bigint NOT NULL REFERENCES nietz.run,
    key text NOT NULL CHECK (key <> ''),
    value jsonb NOT NULL,
    who name NOT NULL DEFAULT session_user,
    said_as text NOT NULL DEFAULT '',
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run, key)
);

-- The scope is empty for what all runs of the workspace share, else the role that began the run. Of rows, `body` is null.
CREATE TABLE nietz.document (
    workspace int NOT NULL REFERENCES nietz.workspace,
    scope text NOT NULL,
    path text NOT NULL CHECK (path <> ''),
    body bytea,
    digest text NOT NULL,
    length bigint NOT NULL,
    run bigint,
    who name NOT NULL DEFAULT session_user,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace, scope, path)
);

-- Rows of documents that only grow. `at` is the byte at which the row would start in a file.
CREATE TABLE nietz.document_row (
    workspace int NOT NULL,
    scope text NOT NULL,
    path text NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL,
    run bigint,
    who name NOT NULL DEFAULT session_user,
    written timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace, scope, path, at),
    FOREIGN KEY (workspace, scope, path) REFERENCES nietz.document ON DELETE CASCADE
);

-- What a person signed off for the team: a folder's or a pack's items, as the file of trust has them.
CREATE TABLE nietz.trust (
    workspace int NOT NULL REFERENCES nietz.workspace,
    subject text NOT NULL CHECK (subject <> ''),
    items jsonb NOT NULL,
    signed_by name NOT NULL DEFAULT session_user,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace, subject)
);

-- What a team may use in a day (UTC); null is no limit. Cost is in US dollars.
CREATE TABLE nietz.budget (
    workspace int PRIMARY KEY REFERENCES nietz.workspace,
    calls bigint CHECK (calls >= 0),
    tokens bigint CHECK (tokens >= 0),
    cost numeric CHECK (cost >= 0)
);

CREATE TABLE nietz.spent (
    workspace int NOT NULL REFERENCES nietz.workspace,
    day date NOT NULL,
    calls bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    cost numeric NOT NULL DEFAULT 0,
    reserved_calls bigint NOT NULL DEFAULT 0 CHECK (reserved_calls >= 0),
    reserved_tokens bigint NOT NULL DEFAULT 0 CHECK (reserved_tokens >= 0),
    reserved_cost numeric NOT NULL DEFAULT 0 CHECK (reserved_cost >= 0),
    PRIMARY KEY (workspace, day)
);

-- The worst case of each call that is under way.
CREATE TABLE nietz.reserved (
    run bigint NOT NULL REFERENCES nietz.run,
    key text NOT NULL,
    day date NOT NULL,
    calls bigint NOT NULL,
    tokens bigint NOT NULL,
    cost numeric NOT NULL,
    PRIMARY KEY (run, key)
);
