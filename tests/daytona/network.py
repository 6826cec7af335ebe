"""Daytona's unmodified Python SDK against a Belljar server whose outside is an internet of our own: what may go out.

Needs only the SDK and its environment variables (DAYTONA_API_KEY, DAYTONA_API_URL). Ends with status 1 at the first difference.
"""

from importlib.metadata import version

from daytona import CreateSandboxFromSnapshotParams, Daytona

from checks import check, checked


def reached(sandbox):
    """Which of the two servers answer, by name."""
    fetch = "for host in api.test other.test; do curl -s -o /dev/null -m 5 http://$host && echo $host; done; true"
    return sandbox.process.exec(fetch).result.split()


def main():
    daytona = Daytona()
    for settings, expected in [
        ({}, ["api.test", "other.test"]),
        ({"network_block_all": True}, []),
        ({"network_allow_list": "203.0.113.10/32"}, ["api.test"]),
        ({"domain_allow_list": "other.test"}, ["other.test"]),
    ]:
        sandbox = daytona.create(CreateSandboxFromSnapshotParams(**settings))
        check(f"what is reached with {settings}", reached(sandbox), expected)
        check("it is told", sandbox.network_block_all, settings.get("network_block_all", False))
        if not settings:
            sandbox.update_network_settings(network_block_all=True)
            check("nothing any more", reached(sandbox), [])
            sandbox.update_network_settings(network_allow_list="203.0.113.20")
            check("only what is listed", reached(sandbox), ["other.test"])
            sandbox.update_network_settings(network_block_all=False)
            check("everything again", reached(sandbox), ["api.test", "other.test"])
        sandbox.delete()
    print(f"daytona {version('daytona')} (Python): {checked()} checks of what goes out")


if __name__ == "__main__":
    main()
