// E2B's unmodified JavaScript SDK builds templates on a Belljar server: steps, files, caching, tags, failures, start commands.
//
// Needs only the SDK (in the directory that is its argument) and its environment variables. Ends with status 1 at the first difference.

import { mkdtemp, mkdir, writeFile, readFile, rm } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createRequire } from 'node:module'

import { check, checked } from '../lab/checks.mjs'

const home = process.argv[2]
const require = createRequire(path.join(home, 'package.json'))
const { Sandbox, Template, waitForPort } = require('e2b')

async function fails(build) {
  try {
    await build()
  } catch (error) {
    return String(error.message)
  }
  return 'it was built'
}

const mark = randomUUID().slice(0, 8)
const name = `js-${mark}`
const directory = await mkdtemp(path.join(tmpdir(), 'belljar-templates-'))
try {
  await mkdir(path.join(directory, 'folder'))
  await writeFile(path.join(directory, 'folder', 'test.txt'), 'from the client')
  const template = Template({ fileContextPath: directory })
    .fromTemplate('base')
    .setEnvs({ COLOUR: 'red' })
    .copy('folder/*', 'folder')
    .runCmd('echo $COLOUR > colour.txt')
    .runCmd('id -un > /root/who', { user: 'root' })
    .setWorkdir('/app')
    .setStartCmd('python3 -m http.server 8123', waitForPort(8123))
  const logs = []
  const info = await Template.build(template, name, { onBuildLogs: (entry) => logs.push(entry.message) })
  check('a build has ids', Boolean(info.templateId && info.buildId))
  check('it says what it does', logs.some((line) => line.includes('RUN')))
  check('the template exists', await Template.exists(name))
  const again = []
  await Template.build(template, name, { onBuildLogs: (entry) => again.push(entry.message) })
  check('an unchanged build is not run again', again.filter((line) => line.includes('CACHED')).length >= 4)
  const sandbox = await Sandbox.create(name, { timeoutMs: 120_000 })
  const done = await sandbox.commands.run(
    "cat /home/user/folder/test.txt; echo; cat /home/user/colour.txt; sudo cat /root/who; pwd; curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8123/"
  )
  await sandbox.kill()
  check('all steps are in a new sandbox', done.stdout, 'from the client\nred\nroot\n/app\n200')
} finally {
  await rm(directory, { recursive: true })
}

const failing = `js-fails-${mark}`
const exit = await fails(() => Template.build(Template().fromTemplate('base').runCmd('exit 7'), failing))
check('a failing command', exit.includes("failed to run command 'exit 7': exit status 7") || exit)
const nobody = await fails(() => Template.build(Template().fromTemplate('base').runCmd('whoami', { user: 'root123' }), failing))
check('a user that is not there', nobody.includes("command failed: unauthenticated: invalid username: 'root123'") || nobody)
check('nothing was made', await Template.exists(failing), false)

await Template.assignTags(name, ['stable'])
check('tags are listed', (await Template.getTags(name)).map((tag) => tag.tag).sort(), ['default', 'stable'])
await Template.removeTags(name, 'stable')
check('tags are removed', (await Template.getTags(name)).map((tag) => tag.tag), ['default'])

const version = JSON.parse(await readFile(path.join(home, 'node_modules/e2b/package.json'), 'utf8')).version
console.log(`templates.mjs: ${checked()} checks passed with e2b ${version}`)
