-- Files that were taken out of sandboxes on purpose. Their bytes are elsewhere, under the id: a row is entered before they are put there
-- (keeping), shown when they are (kept), and goes after them (removing).
CREATE TABLE artifacts (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    state TEXT NOT NULL,
    sandbox TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    body TEXT NOT NULL
);
CREATE INDEX artifacts_pages ON artifacts (project, created_at, id);
CREATE INDEX artifacts_of_sandbox ON artifacts (project, sandbox, created_at, id);
CREATE INDEX artifacts_expiring ON artifacts (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX artifacts_unfinished ON artifacts (state) WHERE state <> 'kept';
