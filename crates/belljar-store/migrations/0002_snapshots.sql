-- What was kept of sandboxes. Only whole ones are shown; `making` and `removing` are what a server that comes back has to finish or undo.
-- A sandbox may be forgotten before its snapshots, so nothing here refers to one.
CREATE TABLE snapshots (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    state TEXT NOT NULL,
    source TEXT NOT NULL,
    root TEXT NOT NULL,
    name TEXT,
    bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    body TEXT NOT NULL
);
CREATE INDEX snapshots_pages ON snapshots (project, created_at, id);
CREATE INDEX snapshots_of_source ON snapshots (project, source, created_at, id);
CREATE INDEX snapshots_by_name ON snapshots (project, name, created_at, id);
CREATE INDEX snapshots_of_root ON snapshots (project, root, created_at, id);
CREATE INDEX snapshots_expiring ON snapshots (expires_at) WHERE expires_at IS NOT NULL;

-- The sandbox that a copy's line of copies began with; unset for one that is no copy.
ALTER TABLE sandboxes ADD COLUMN root TEXT;
CREATE INDEX sandboxes_of_root ON sandboxes (project, root, created_at, id) WHERE root IS NOT NULL;
