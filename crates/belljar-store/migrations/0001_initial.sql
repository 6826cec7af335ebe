-- What both databases understand: TEXT and BIGINT, digests as hexadecimal text. A row that is read by more than its columns
-- keeps the whole thing as JSON in `body`; the columns beside it are what is searched, compared and summed up.

-- One row. Every write of a server compares its epoch with this one.
CREATE TABLE meta (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    epoch BIGINT NOT NULL
);
INSERT INTO meta (id, epoch) VALUES (1, 0);

-- One row, written by health checks: apart from `meta`, whose row every writer holds on to.
CREATE TABLE health (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    probes BIGINT NOT NULL
);
INSERT INTO health (id, probes) VALUES (1, 0);

-- The live counters are kept along with every reserve and end, and summed up anew at the start of each epoch.
CREATE TABLE projects (
    id TEXT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    quota_sandboxes BIGINT NOT NULL,
    quota_cpu_millis BIGINT NOT NULL,
    quota_memory_bytes BIGINT NOT NULL,
    quota_disk_bytes BIGINT NOT NULL,
    live_sandboxes BIGINT NOT NULL DEFAULT 0,
    live_cpu_millis BIGINT NOT NULL DEFAULT 0,
    live_memory_bytes BIGINT NOT NULL DEFAULT 0,
    live_disk_bytes BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    hash TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL
);
CREATE INDEX keys_of_project ON keys (project);

-- `ended_at` is set exactly when the state is one that nothing follows. What was charged to the project stands in the row, so that
-- the same is given back, whatever the body says then. `metadata` is a digest of all of it: only a change is written out below.
CREATE TABLE sandboxes (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    state TEXT NOT NULL,
    execution TEXT NOT NULL,
    class TEXT NOT NULL,
    template TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    ended_at BIGINT,
    cpu_millis BIGINT NOT NULL,
    memory_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    metadata TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX sandboxes_pages ON sandboxes (project, created_at, id);
CREATE INDEX sandboxes_of_template ON sandboxes (project, template, created_at, id);
CREATE INDEX sandboxes_live ON sandboxes (project, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX sandboxes_ended ON sandboxes (ended_at) WHERE ended_at IS NOT NULL;

-- One row for each key and value, as one digest: values may be longer than an index takes. The sandbox's time of creation stands
-- here too, so that a page by metadata is read off the index in its order.
CREATE TABLE sandbox_metadata (
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    pair TEXT NOT NULL,
    project TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (sandbox, pair)
);
CREATE INDEX sandbox_metadata_pages ON sandbox_metadata (project, pair, created_at, sandbox);

-- Deferred, because the key is claimed before its sandbox is entered: the claim is what two equal requests race for.
CREATE TABLE idempotency (
    project TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (project, key)
);
CREATE INDEX idempotency_of_sandbox ON idempotency (sandbox);
CREATE INDEX idempotency_by_age ON idempotency (used_at);
