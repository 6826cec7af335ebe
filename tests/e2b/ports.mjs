// Programs in a sandbox, reached from outside by their host names over TLS, with E2B's unmodified JavaScript SDK.
//
// Needs the SDK (in the directory of the first argument), E2B_DOMAIN and E2B_API_KEY, names that lead to the server, and NODE_EXTRA_CA_CERTS if
// its certificate is not a public one.

import { createRequire } from 'node:module'
import { join } from 'node:path'

import { check, checked } from '../lab/checks.mjs'

const require = createRequire(join(process.argv[2], 'package.json'))
const { Sandbox } = require('e2b')
const PORT = 8000

async function waitFor(url, headers = {}) {
  let answer
  for (let attempt = 0; attempt < 100; attempt += 1) {
    answer = await fetch(url, { headers })
    if (answer.ok) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return await answer.text()
}

async function serve(sandbox) {
  await sandbox.files.write('/tmp/www/page.txt', 'from inside')
  await sandbox.commands.run(`python3 -m http.server ${PORT} --bind 127.0.0.1 --directory /tmp/www`, { background: true, timeoutMs: 0 })
}

const sandbox = await Sandbox.create('base', { timeoutMs: 300_000 })
const host = sandbox.getHost(PORT)
const nobody = await fetch(`https://${host}/`)
check('a port that nobody listens on', [nobody.status, (await nobody.json()).port], [502, PORT])
await serve(sandbox)
check('a program that listens on loopback', await waitFor(`https://${host}/page.txt`), 'from inside')
const link = await sandbox.downloadUrl('/tmp/www/page.txt', { user: 'user', useSignatureExpiration: 60_000 })
check('a signed link', await (await fetch(link)).text(), 'from inside')
check('a forged one', (await fetch(link.replace('page.txt', 'other.txt'))).ok, false)

const closed = await Sandbox.create('base', { timeoutMs: 300_000, network: { allowPublicTraffic: false } })
await serve(closed)
const page = `https://${closed.getHost(PORT)}/page.txt`
check('with its token', await waitFor(page, { 'e2b-traffic-access-token': closed.trafficAccessToken }), 'from inside')
check('without it', (await fetch(page)).status, 403)

await closed.kill()
await sandbox.kill()
const gone = await fetch(`https://${host}/`)
check('a sandbox that was killed', [gone.status, (await gone.json()).sandboxId], [502, sandbox.sandboxId])
console.log(`ports by host name (JavaScript): ${checked()} checks passed`)
