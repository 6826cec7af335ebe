// E2B's unmodified JavaScript SDK on a Belljar server: what goes out of sandboxes, and secrets that they use and never have.
//
// Needs the SDK (in the directory that is its argument), its environment variables, and a server whose outside is the internet of
// tests/lab/internet.py. Ends with status 1 at the first difference.

import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { createRequire } from 'node:module'

import { check, checked, raises } from '../lab/checks.mjs'

const require = createRequire(path.join(process.argv[2], 'package.json'))
const e2b = require('e2b')
const { ALL_TRAFFIC, Sandbox } = e2b

const [API, OTHER] = ['203.0.113.10', '203.0.113.20']

// Which of these answer.
async function reaches(sandbox, ...urls) {
  const curl = (url) => `curl -sk --connect-timeout 5 --max-time 10 -o /dev/null -w '%{http_code} ' ${url} || true`
  const { stdout } = await sandbox.commands.run(urls.map(curl).join('; '))
  return stdout.trim().split(/\s+/).map((code) => code === '200')
}

async function headers(sandbox, words) {
  return JSON.parse((await sandbox.commands.run(`curl -sS --max-time 10 ${words}`)).stdout).headers
}

async function rules() {
  const everywhere = [`http://${API}/`, `http://${OTHER}/`, 'http://api.test/', 'https://other.test/']
  const sandbox = await Sandbox.create('base', { timeoutMs: 120_000 })
  check('everything is reached when nothing is said', await reaches(sandbox, ...everywhere), [true, true, true, true])
  if (sandbox.updateNetwork) {
    await sandbox.updateNetwork({ denyOut: [OTHER] })
    check('a denied address, by number and by name', await reaches(sandbox, ...everywhere), [true, false, true, false])
    await sandbox.updateNetwork({ denyOut: [ALL_TRAFFIC], allowOut: ['other.test'] })
    check('an allowed name alone', await reaches(sandbox, ...everywhere), [false, false, false, true])
    await sandbox.updateNetwork({})
    check('everything again', await reaches(sandbox, ...everywhere), [true, true, true, true])
    await raises('names need everything else denied', Error, () => sandbox.updateNetwork({ allowOut: ['api.test'] }))
  }
  await sandbox.kill()

  const some = await Sandbox.create('base', { timeoutMs: 60_000, network: { denyOut: [ALL_TRAFFIC], allowOut: [API, '*.wild.test'] } })
  const urls = [`http://${API}/`, `http://${OTHER}/`, 'http://a.wild.test/', 'https://b.wild.test/', 'http://other.test/']
  check('an address and a wildcard', await reaches(some, ...urls), [true, false, true, true, false])
  await some.kill()

  const closed = await Sandbox.create('base', { timeoutMs: 60_000, allowInternetAccess: false })
  check('no internet', await reaches(closed, ...everywhere), [false, false, false, false])
  await closed.kill()
}

async function transforms() {
  const value = `s3cret-${randomUUID()}`
  const injected = { 'X-Plain': 'as it is' }
  let made
  if (e2b.Secret) {
    made = await e2b.Secret.create(`Key-${randomUUID().slice(0, 8)}`, value, { metadata: { env: 'test' } })
    check('its first version', made.version, 1)
    injected.Authorization = `Bearer ${e2b.Secret.fill(made.name)}`
  }
  const network = { rules: { 'api.test': [{ transform: { headers: injected } }] } }
  const sandbox = await Sandbox.create('base', { timeoutMs: 120_000, network })
  const seen = await headers(sandbox, "-H 'X-Plain: mine' -H 'Authorization: mine' https://api.test/x")
  check('a header is replaced', seen['x-plain'], 'as it is')
  if (made) {
    check('a secret is put in', seen.authorization, `Bearer ${value}`)
    check('and never over plain HTTP', 'authorization' in (await headers(sandbox, 'http://api.test/')), false)
    await e2b.Secret.update(made.secretId, `${value}-2`)
    check('another version is used at once', (await headers(sandbox, 'https://api.test/')).authorization, `Bearer ${value}-2`)
    check('it is removed', await e2b.Secret.destroy(made.secretId), true)
    check('once', await e2b.Secret.destroy(made.secretId), false)
  }
  await sandbox.kill()
}

await rules()
await transforms()
console.log(`e2b (JavaScript) ${require('e2b/package.json').version}: network, ${checked()} checks passed`)
process.exit(0)
