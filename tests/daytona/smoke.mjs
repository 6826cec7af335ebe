// Daytona's unmodified JavaScript SDK against a Belljar server: every basic feature once.
//
// Needs only the SDK (found through the directory it is installed in, the first argument) and its environment variables. Ends with status 1 at
// the first difference.

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

import { check, checked, raises } from '../lab/checks.mjs'

const require = createRequire(join(process.argv[2], 'package.json'))
// The same SDK is published under two names.
const name = existsSync(join(process.argv[2], 'node_modules', '@daytona', 'sdk')) ? '@daytona/sdk' : '@daytonaio/sdk'
const { Daytona, DaytonaError, DaytonaNotFoundError } = require(name)
const { version } = require(`${name}/package.json`)
// Newer SDKs know what went wrong, older ones know that something did.
const isNew = Number(version.split('.')[1]) >= 200

async function sandboxes(daytona) {
  const mark = crypto.randomUUID()
  const name = `box ${mark}`
  const wanted = { name, snapshot: 'base', language: 'javascript', labels: { mark }, envVars: { GREETING: 'hello' }, autoStopInterval: 30 }
  const sandbox = await daytona.create(wanted)
  check('its state', [sandbox.state, sandbox.name, sandbox.autoStopInterval], ['started', name, 30])
  check('its labels', sandbox.labels.mark, mark)
  check('it is found by its name', (await daytona.get(name)).id, sandbox.id)
  await raises('its name is its own', DaytonaError, () => daytona.create(wanted))
  const ids = []
  if (isNew) for await (const one of daytona.list({ labels: { mark } })) ids.push(one.id)
  else ids.push(...(await daytona.list({ mark })).items.map((one) => one.id))
  check('it is listed by its labels', ids, [sandbox.id])
  check('new labels', await sandbox.setLabels({ ...sandbox.labels, more: 'x' }).then((labels) => labels.more), 'x')
  await sandbox.setAutostopInterval(45)
  await sandbox.refreshData()
  check('another interval', sandbox.autoStopInterval, 45)
  await raises('there is no such sandbox', isNew ? DaytonaNotFoundError : DaytonaError, () => daytona.get('no-such-sandbox'))
  return sandbox
}

async function commands(sandbox) {
  const run = (...what) => sandbox.process.executeCommand(...what)
  const said = async (...what) => (await run(...what)).result.trimEnd()
  check('output', (await said('echo $GREETING; echo oops >&2')).split('\n').sort(), ['hello', 'oops'])
  check('a failure', (await run('exit 3')).exitCode, 3)
  check('environment', await said('echo $A$DAYTONA_SANDBOX_ID', undefined, { A: 'x' }), `x${sandbox.id}`)
  check('directory', await said('pwd', '/tmp'), '/tmp')
  await raises('a timeout', DaytonaError, () => run('sleep 30', undefined, undefined, 1))
  const code = await sandbox.process.codeRun('console.log(6 * 7, process.argv.slice(1))', { argv: ['a'] })
  check('code', [code.result.trimEnd(), code.exitCode], ["42 [ 'a' ]", 0])
}

async function sessions(sandbox) {
  const { process } = sandbox
  const session = `work-${crypto.randomUUID()}`
  await process.createSession(session)
  const run = (command, runAsync) => process.executeSessionCommand(session, { command, runAsync })
  const first = await run('cd /tmp; export A=1; echo out; echo err >&2')
  check('output', [first.exitCode, first.stdout, first.stderr], [0, 'out\n', 'err\n'])
  check('what was set stays', (await run('pwd; echo $A')).stdout, '/tmp\n1\n')
  check('its logs', (await process.getSessionCommandLogs(session, first.cmdId)).stdout, 'out\n')
  const slow = await run('for i in 1 2 3; do echo $i; sleep 0.2; done; echo done >&2', true)
  const heard = { out: '', err: '' }
  await process.getSessionCommandLogs(session, slow.cmdId, (text) => (heard.out += text), (text) => (heard.err += text))
  check('what it said as it said it', heard, { out: '1\n2\n3\n', err: 'done\n' })
  check('how it ended', (await process.getSessionCommand(session, slow.cmdId)).exitCode, 0)
  await process.deleteSession(session)
  await raises('what was deleted is not found', DaytonaError, () => process.getSession(session))
}

async function files(sandbox) {
  const { fs } = sandbox
  await fs.createFolder('work', '750')
  await fs.uploadFile(Buffer.from('hello\n'), 'work/a.txt')
  check('its content', (await fs.downloadFile('work/a.txt')).toString(), 'hello\n')
  const big = Buffer.alloc(10_000_000, 'belljar')
  await fs.uploadFiles([{ source: big, destination: '/home/user/work/big' }, { source: Buffer.from('two\n'), destination: 'work/b c.txt' }])
  check('much content', (await fs.downloadFile('work/big')).equals(big))
  check('the list', (await fs.listFiles('work')).map((one) => one.name).sort(), ['a.txt', 'b c.txt', 'big'])
  check('by name', (await fs.searchFiles('work', '*.txt')).files.sort(), ['work/a.txt', 'work/b c.txt'])
  check('by content', (await fs.findFiles('work', 'two')).map((one) => one.file), ['work/b c.txt'])
  await fs.setFilePermissions('work/a.txt', { mode: '600' })
  check('permissions', (await fs.getFileDetails('work/a.txt')).permissions, '0600')
  await fs.moveFiles('work/a.txt', 'work/moved')
  await fs.deleteFile('work/moved')
  await raises('it is gone', isNew ? DaytonaNotFoundError : DaytonaError, () => fs.getFileDetails('work/moved'))
}

async function terminals(sandbox) {
  const { process } = sandbox
  const id = `tty-${crypto.randomUUID()}`
  let shown = ''
  const onData = (data) => (shown += new TextDecoder().decode(data))
  const terminal = await process.createPty({ id, cwd: '/tmp', envs: { A: 'x' }, cols: 100, rows: 30, onData })
  await terminal.waitForConnection()
  check('another size', (await process.resizePtySession(id, 120, 40)).cols, 120)
  await terminal.sendInput('stty size; pwd; echo $A-$TERM; exit 7\n')
  const result = await terminal.wait()
  check('its end', result.exitCode, 7)
  check('what it shows', ['40 120', '/tmp', 'x-xterm-256color'].map((word) => shown.includes(word)), [true, true, true])
}

async function life(daytona, sandbox) {
  await sandbox.fs.uploadFile(Buffer.from('kept'), 'kept.txt')
  const listener = await daytona.get(sandbox.id)
  await sandbox.stop()
  check('it is stopped', sandbox.state, 'stopped')
  // Who listens for news is told, sooner or later, without asking about it.
  for (let turns = 0; isNew && listener.state !== 'stopped' && turns < 5000; turns += 1) await daytona.get(sandbox.id)
  check('who listens is told', listener.state, isNew ? 'stopped' : 'started')
  await sandbox.start()
  check('it is started', sandbox.state, 'started')
  check('its files are there', (await sandbox.fs.downloadFile('kept.txt')).toString(), 'kept')
  await sandbox.delete()
  await raises('it is gone', isNew ? DaytonaNotFoundError : DaytonaError, () => daytona.get(sandbox.id))
}

const daytona = new Daytona()
const sandbox = await sandboxes(daytona)
for (const part of [commands, sessions, files, terminals]) await part(sandbox)
await life(daytona, sandbox)
console.log(`${name} ${version} (JavaScript): ${checked()} checks of the basics`)
