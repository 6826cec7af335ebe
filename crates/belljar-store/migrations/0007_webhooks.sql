-- Who is told. What they are signed with is not here: it is made from the id and a key that only the server has.
CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    url TEXT NOT NULL,
    kinds TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    delivered_at BIGINT,
    problem TEXT
);
CREATE INDEX webhooks_of_project ON webhooks (project);

-- What is still to be told. A row is entered in the transaction of what it tells of, and goes when its receiver has it. Of one webhook and one
-- sandbox the lowest number is told first, and nothing after it before. Rows of a webhook that is gone are told to nobody: one may be entered
-- in the moment in which its webhook is removed, and must not keep what it tells of from happening.
CREATE TABLE deliveries (
    webhook TEXT NOT NULL,
    sandbox TEXT NOT NULL,
    number BIGINT NOT NULL,
    message TEXT NOT NULL,
    body TEXT NOT NULL,
    entered_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    PRIMARY KEY (webhook, sandbox, number)
);
CREATE INDEX deliveries_by_time ON deliveries (due_at);
CREATE INDEX deliveries_of_sandbox ON deliveries (sandbox, number);
