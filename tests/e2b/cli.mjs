// E2B's unmodified command line against a Belljar server: a template from a Dockerfile, and sandboxes of it.
//
// Needs only the CLI (in the directory that is the argument) and the environment variables. Ends with status 1 at the first difference.

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { check, checked } from '../lab/checks.mjs'

const home = process.argv[2]
const program = join(home, 'node_modules/@e2b/cli/dist/index.js')
const directory = await mkdtemp(join(tmpdir(), 'belljar-cli-'))

async function cli(...args) {
  // Its own settings of whoever runs this are left alone.
  const running = promisify(execFile)(process.execPath, [program, ...args], { cwd: directory, env: { ...process.env, HOME: directory } })
  running.child.stdin.end()
  try {
    const { stdout, stderr } = await running
    return { code: 0, stdout, stderr }
  } catch (error) {
    return { code: error.code, stdout: error.stdout, stderr: error.stderr }
  }
}

async function must(...args) {
  const done = await cli(...args)
  if (done.code !== 0) console.error(done.stdout, done.stderr)
  check(`e2b ${args.join(' ')}`, done.code, 0)
  return done.stdout
}

const name = `cli-${randomUUID().slice(0, 8)}`
try {
  await writeFile(join(directory, 'greeting.txt'), 'from the client\n')
  const dockerfile = 'FROM e2bdev/base\nENV COLOUR=red\nWORKDIR /srv/app\nCOPY greeting.txt /srv/app/\nRUN echo built > built\nUSER user\n'
  await writeFile(join(directory, 'e2b.Dockerfile'), dockerfile)
  await must('template', 'create', name)
  const listed = JSON.parse(await must('template', 'list', '--format', 'json'))
  check('the template is listed', listed.some((template) => template.aliases.includes(name)))
  const created = await must('sandbox', 'create', name, '--detach')
  const id = created.match(/\b(s[a-z0-9]{19})\b/)?.[1]
  check('a sandbox has an id', Boolean(id), true)
  check('exec', await must('sandbox', 'exec', id, '--', 'cat /srv/app/built /srv/app/greeting.txt; echo $COLOUR'), 'built\nfrom the client\nred\n')
  check('exec has the exit code', (await cli('sandbox', 'exec', id, '--', 'exit 7')).code, 7)
  const sandboxes = JSON.parse(await must('sandbox', 'list', '--format', 'json'))
  check('the sandbox is listed', sandboxes.some((sandbox) => sandbox.sandboxId === id))
  await must('sandbox', 'kill', id)
  const left = JSON.parse(await must('sandbox', 'list', '--format', 'json'))
  check('and no longer', left.some((sandbox) => sandbox.sandboxId === id), false)
  await must('template', 'delete', '--yes', name)
  const gone = JSON.parse(await must('template', 'list', '--format', 'json'))
  check('the template is gone', gone.some((template) => template.aliases.includes(name)), false)
} finally {
  await rm(directory, { recursive: true })
}
const version = JSON.parse(await readFile(join(home, 'node_modules/@e2b/cli/package.json'), 'utf8')).version
console.log(`cli.mjs: ${checked()} checks passed with @e2b/cli ${version}`)
