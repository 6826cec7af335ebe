// The Model Context Protocol's own JavaScript SDK against `belljar mcp --listen`: an address that is a computer.
//
// Needs the SDK (found through the directory it is installed in, the first argument), BELLJAR_URL, BELLJAR_API_KEY and BELLJAR_BIN. Ends with
// status 1 at the first difference.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { check, checked } from '../lab/checks.mjs'

const require = createRequire(join(process.argv[2], 'package.json'))
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js')
const { BELLJAR_API_KEY, BELLJAR_BIN } = process.env

const door = spawn(BELLJAR_BIN, ['mcp', '--listen', '127.0.0.1:0', '--template', 'base'], { stdio: ['ignore', 'pipe', 'ignore'] })
process.on('exit', () => door.kill())
const [url] = await once(createInterface(door.stdout), 'line')

async function visit(path, work) {
  const client = new Client({ name: 'computers', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${BELLJAR_API_KEY}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}${path}`), { requestInit }))
  const ask = async (tool, args = {}) => (await client.callTool({ name: tool, arguments: args })).content.map((part) => part.text).join('\n')
  await work(ask, client)
  await client.close()
}

await visit('/js', async (ask, client) => {
  check('its tools', (await client.listTools()).tools.length, 12)
  check('it stays, it says', client.getInstructions().includes('the same the next time'))
  check('a file', await ask('write_file', { path: 'kept', content: 'kept\n' }), '[kept has 5 bytes now]')
})
await visit('/js', async (ask) => {
  check('another connection finds it', await ask('run_command', { command: 'cat kept' }), 'kept\n[exit code 0]')
  check('and ends it', (await ask('end_sandbox')).endsWith('has ended]'))
})
door.kill()
await once(door, 'exit')
console.log(`mcp computers (JavaScript): ${checked()} checks`)
