// E2B's unmodified JavaScript SDK against a Belljar server: every basic feature once.
//
// Needs only the SDK (found through the directory it is installed in, the first argument) and its environment variables. Ends with status 1 at
// the first difference.

import { createRequire } from 'node:module'
import { join } from 'node:path'

import { check, checked, raises } from '../lab/checks.mjs'

const require = createRequire(join(process.argv[2], 'package.json'))
const { CommandExitError, FilesystemEventType, NotFoundError, Sandbox, TimeoutError } = require('e2b')

async function sandboxes() {
  const mark = crypto.randomUUID()
  const sandbox = await Sandbox.create('base', { timeoutMs: 120_000, metadata: { mark }, envs: { GREETING: 'hello' } })
  check('it runs', await sandbox.isRunning())
  const listed = await Sandbox.list({ query: { metadata: { mark } } }).nextItems()
  check('it is listed', listed.map((item) => item.sandboxId), [sandbox.sandboxId])
  const other = await Sandbox.create('base', { timeoutMs: 60_000, metadata: { mark } })
  check('it is killed', await Sandbox.kill(other.sandboxId))
  check('it is killed once', await Sandbox.kill(other.sandboxId), false)
  check('it does not run', await other.isRunning(), false)
  await raises('what was killed is not found', NotFoundError, () => Sandbox.connect(other.sandboxId))
  const again = await Sandbox.connect(sandbox.sandboxId)
  check('the same sandbox', again.sandboxId, sandbox.sandboxId)
  await sandbox.setTimeout(300_000)
  return sandbox
}

async function commands(sandbox) {
  check('output', (await sandbox.commands.run('echo $GREETING')).stdout, 'hello\n')
  check('user', (await sandbox.commands.run('whoami', { user: 'root' })).stdout, 'root\n')
  const failed = await raises('a failure', CommandExitError, () => sandbox.commands.run('exit 3'))
  check('its code', failed.exitCode, 3)
  await raises('a timeout', TimeoutError, () => sandbox.commands.run('sleep 30', { timeoutMs: 1000 }))
  const reader = await sandbox.commands.run('cat', { background: true, stdin: true })
  await sandbox.commands.sendStdin(reader.pid, 'one\n')
  await sandbox.commands.closeStdin(reader.pid)
  check('what it read', (await reader.wait()).stdout, 'one\n')
  const sleeper = await sandbox.commands.run('sleep 100', { background: true })
  check('it is killed', await sandbox.commands.kill(sleeper.pid))
  await raises('its end', CommandExitError, () => sleeper.wait())
  let seen = ''
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: (data) => (seen += new TextDecoder().decode(data)) })
  await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 30 })
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('tput cols; exit\n'))
  await terminal.wait()
  check('a terminal of another size', seen.includes('100'))
}

async function files(sandbox) {
  const written = await sandbox.files.write('notes/a.txt', 'hällo')
  check('where it is', [written.name, written.path, written.type], ['a.txt', '/home/user/notes/a.txt', 'file'])
  check('what was written', await sandbox.files.read('notes/a.txt'), 'hällo')
  check('a new directory', await sandbox.files.makeDir('d'))
  check('one that is there', await sandbox.files.makeDir('d'), false)
  const events = []
  const watch = await sandbox.files.watchDir('d', (event) => events.push(event))
  await sandbox.files.write('d/x', '1')
  for (let i = 0; i < 100 && !events.some((event) => event.type === FilesystemEventType.WRITE); i++) {
    await new Promise((done) => setTimeout(done, 50))
  }
  check('events', events.some((event) => event.type === FilesystemEventType.CREATE && event.name === 'x'))
  await watch.stop()
  check('a list', (await sandbox.files.list('d')).map((entry) => entry.name), ['x'])
  await sandbox.files.remove('d')
  check('removed', await sandbox.files.exists('d'), false)
  await raises('what is not there', NotFoundError, () => sandbox.files.read('no-such-file'))
  const link = await sandbox.downloadUrl('notes/a.txt', { user: 'user', useSignatureExpiration: 60_000 })
  check('a signed link', await (await fetch(link)).text(), 'hällo')
}

async function snapshots(sandbox) {
  await sandbox.files.write('state.txt', 'before')
  const taken = await sandbox.createSnapshot()
  await sandbox.files.write('state.txt', 'after')
  const copy = await Sandbox.create(taken.snapshotId, { timeoutMs: 60_000 })
  check('a sandbox begins as the snapshot', await copy.files.read('state.txt'), 'before')
  check('a snapshot is removed', await Sandbox.deleteSnapshot(taken.snapshotId))
  check('once', await Sandbox.deleteSnapshot(taken.snapshotId), false)
  await copy.kill()
  if (sandbox.fork) {
    const forks = await sandbox.fork({ count: 2, timeoutMs: 60_000 })
    for (const fork of forks) {
      check('a fork has its origin\'s files', await fork.files.read('state.txt'), 'after')
      await fork.kill()
    }
  }
}

async function pauses(sandbox) {
  const sleeper = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  await sandbox.pause()
  check('it is paused', (await sandbox.getInfo()).state, 'paused')
  const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 300_000 })
  check('connecting resumes it', (await again.getInfo()).state, 'running')
  check('its processes went on', (await again.commands.list()).some((process) => process.pid === sleeper.pid))
  check('and are killed', await again.commands.kill(sleeper.pid))
  await sleeper.disconnect()
  check('its use is measured', (await again.getMetrics()).at(-1).memTotal > 0)
}

async function ends(sandbox) {
  const running = await sandbox.commands.run('sleep 1000', { background: true })
  const ended = raises('a stream of what was killed ends', TimeoutError, () => running.wait())
  await sandbox.kill()
  const error = await ended
  check('and says why', error.message.includes('killed or reached its end of life'))
}

const sandbox = await sandboxes()
await commands(sandbox)
await files(sandbox)
await snapshots(sandbox)
await pauses(sandbox)
await ends(sandbox)
console.log(`e2b (JavaScript) ${require('e2b/package.json').version}: ${checked()} checks passed`)
process.exit(0)
