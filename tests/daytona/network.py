"""Daytona's unmodified Python SDK against a Belljar server whose outside is an internet of our own: what may go out.

Needs only the SDK and its environment variables (DAYTONA_API_KEY, DAYTONA_API_URL). Ends with status 1 at the first difference.
"""

from importlib.metadata import version

from daytona import CreateSandboxFromSnapshotParams, Daytona

from lab.checks import check, checked


# Two servers, each by its name and its address.
API, OTHER = "api.test", "other.test"
API_ADDRESS, OTHER_ADDRESS = "203.0.113.10", "203.0.113.20"
ALL = [API, OTHER, API_ADDRESS, OTHER_ADDRESS]


def reached(sandbox):
    """Which of them answer."""
    fetch = f"for host in {' '.join(ALL)}; do curl -s -o /dev/null -m 5 http://$host && echo $host; done; true"
    return sandbox.process.exec(fetch).result.split()


def main():
    daytona = Daytona()
    for settings, expected in [
        ({}, ALL),
        ({"network_block_all": True}, []),
        # Names are looked up for those who may go to names.
        ({"network_allow_list": f"{API_ADDRESS}/32"}, [API_ADDRESS]),
        ({"domain_allow_list": OTHER}, [OTHER]),
        ({"network_allow_list": API_ADDRESS, "domain_allow_list": OTHER}, [OTHER, API_ADDRESS]),
    ]:
        sandbox = daytona.create(CreateSandboxFromSnapshotParams(**settings))
        check(f"what is reached with {settings}", reached(sandbox), expected)
        check("it is told", sandbox.network_block_all, settings.get("network_block_all", False))
        if not settings:
            sandbox.update_network_settings(network_block_all=True)
            check("nothing any more", reached(sandbox), [])
            sandbox.update_network_settings(network_allow_list=OTHER_ADDRESS)
            check("only what is listed", reached(sandbox), [OTHER_ADDRESS])
            sandbox.update_network_settings(network_block_all=False)
            check("everything again", reached(sandbox), ALL)
        sandbox.delete()
    print(f"daytona {version('daytona')} (Python): {checked()} checks of what goes out")


if __name__ == "__main__":
    main()
