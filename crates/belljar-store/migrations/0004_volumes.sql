-- Storage that outlives sandboxes. Only ready ones are shown; `making` and `removing` are what a server that comes back has to finish or undo.
CREATE TABLE volumes (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (project, name)
);

-- Who has which volume, from the moment a sandbox is entered until its end is recorded.
CREATE TABLE volume_mounts (
    volume TEXT NOT NULL REFERENCES volumes (id),
    sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    mode TEXT NOT NULL,
    PRIMARY KEY (volume, sandbox)
);
CREATE INDEX volume_mounts_of_sandbox ON volume_mounts (sandbox);
