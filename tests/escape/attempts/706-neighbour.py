# Connects to another sandbox: its agent and a listener inside it.
# Why it matters: tenants must not see one another.
# When it works: anything answers.
# control: host-root
from attempt import blocked, fact, run
from network import ask_all, summary


def attempt():
    blocked(summary(ask_all((fact("NEIGHBOUR"),), (int(fact("AGENT_PORT")), int(fact("NEIGHBOUR_PORT"))))))


run(attempt)
