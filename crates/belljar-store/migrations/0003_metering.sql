-- What was counted of each sandbox. A row outlives its sandbox; what a project or a key used is the sum of its rows.
CREATE TABLE meter_readings (
    sandbox TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL,
    key_id TEXT,
    cpu_micros BIGINT NOT NULL,
    wall_millis BIGINT NOT NULL,
    memory_mib_seconds BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL,
    ingress_bytes BIGINT NOT NULL,
    executions BIGINT NOT NULL,
    read_at BIGINT NOT NULL
);
CREATE INDEX meter_readings_of_project ON meter_readings (project, read_at);
CREATE INDEX meter_readings_of_key ON meter_readings (key_id, read_at);

-- How much somebody may have; `warned_at` is set by whoever tells of the soft limit, so that it is told once.
CREATE TABLE budgets (
    subject TEXT NOT NULL,
    meter TEXT NOT NULL,
    soft BIGINT,
    hard BIGINT,
    at_limit TEXT NOT NULL,
    warned_at BIGINT,
    PRIMARY KEY (subject, meter)
);

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
-- sandbox the lowest number is told first, and nothing after it before.
CREATE TABLE deliveries (
    webhook TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
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
