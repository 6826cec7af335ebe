// The Model Context Protocol's own JavaScript SDK against `belljar mcp`: what an agent does most.
//
// Needs the SDK (found through the directory it is installed in, the first argument), BELLJAR_URL, BELLJAR_API_KEY and BELLJAR_BIN. Ends with
// status 1 at the first difference.

import { createRequire } from 'node:module'
import { join } from 'node:path'

import { check, checked } from '../lab/checks.mjs'

const require = createRequire(join(process.argv[2], 'package.json'))
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')
const { BELLJAR_API_KEY, BELLJAR_BIN, BELLJAR_URL } = process.env

async function running() {
  const answer = await fetch(`${BELLJAR_URL}/v1/sandboxes?state=running`, { headers: { authorization: `Bearer ${BELLJAR_API_KEY}` } })
  return (await answer.json()).sandboxes.map((sandbox) => sandbox.id)
}

const client = new Client({ name: 'smoke', version: '1' })
await client.connect(new StdioClientTransport({ command: BELLJAR_BIN, args: ['mcp', '--template', 'base'], env: { ...process.env } }))

async function ask(tool, args = {}, options = {}) {
  const { content, isError } = await client.callTool({ name: tool, arguments: args }, undefined, options)
  return { text: content.map((part) => part.text).join('\n'), isError: isError ?? false }
}

const before = await running()
check('who it is', client.getServerVersion().name, 'belljar')
check('its tools', (await client.listTools()).tools.length, 12)
check('a command', await ask('run_command', { command: 'echo hello; exit 3' }), { text: 'hello\n[exit code 3]', isError: false })
check('a file', (await ask('write_file', { path: '/home/user/a/b.txt', content: 'one\ntwo\n' })).isError, false)
check('an edit', (await ask('edit_file', { path: '/home/user/a/b.txt', old_text: 'two', new_text: '2' })).isError, false)
check('what it is now', (await ask('read_file', { path: '/home/user/a/b.txt' })).text, 'one\n2\n')
check('a checkpoint', (await ask('checkpoint', { name: 'good' })).isError, false)
await ask('run_command', { command: 'rm -rf a' })
check('gone back', (await ask('restore_checkpoint', { name: 'good' })).isError, false)
check('it is there again', (await ask('list_directory', { path: '/home/user/a' })).text, '/home/user/a/b.txt  6 bytes')
const fork = (await ask('fork_sandbox')).text.split('\n')[0]
check('two sandboxes', (await running()).length, before.length + 2)
check('a fork', (await ask('run_command', { command: 'cat a/b.txt', sandbox: fork })).text, 'one\n2\n[exit code 0]')
const wrong = await ask('read_file', { path: '/no/such' })
check('a failure is told to the model', [wrong.isError, wrong.text.includes('No such file')], [true, true])
const port = await ask('share_port', { port: 8000 })
check('a port', [port.isError, port.text.includes('nothing listens on it yet')], [false, true])
const stop = new AbortController()
const waiting = ask('run_command', { command: 'echo $$ > /tmp/left; exec sleep 500' }, { signal: stop.signal }).catch((error) => error)
await ask('run_command', { command: 'until [ -s /tmp/left ]; do sleep 0.05; done' })
stop.abort()
await waiting
const ended = await ask('run_command', { command: 'while kill -0 $(cat /tmp/left) 2>/dev/null; do sleep 0.05; done; echo ended' })
check('what nobody waits for is ended', ended.text, 'ended\n[exit code 0]')
await client.close()
while ((await running()).length > before.length) await new Promise((wake) => setTimeout(wake, 50))
console.log(`mcp smoke (JavaScript): ${checked()} checks`)
