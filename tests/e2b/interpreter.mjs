// E2B's unmodified JavaScript code interpreter SDK against a Belljar server: results, languages and contexts.
//
// Needs only the SDK (found through the directory it is installed in, the first argument), its environment variables and the template
// code-interpreter-v1. Ends with status 1 at the first difference.

import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { check, checked, raises } from '../lab/checks.mjs'

const require = createRequire(join(process.argv[2], 'package.json'))
const { Sandbox } = require('@e2b/code-interpreter')

async function code(box) {
  const seen = []
  const run = await box.runCode("print('out')\n6 * 7", { onStdout: (out) => seen.push(out.line), onResult: (result) => seen.push(result.text) })
  check('its value', run.text, '42')
  check('callbacks', seen, ['out\n', '42'])
  check('its output', run.logs.stdout, ['out\n'])
  const failed = await box.runCode('undefined_name')
  check('its error', [failed.error.name, failed.error.value], ['NameError', "name 'undefined_name' is not defined"])
  const table = (await box.runCode("import pandas as pd\npd.DataFrame({'a': [1, 2]})")).results[0]
  check('a table', table.data, { a: [1, 2] })
  const chart = (await box.runCode("import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2])\nplt.show()")).results[0]
  check('a picture', chart.png.startsWith('iVBOR'))
  check('a chart', [chart.chart.type, chart.chart.elements.map((bar) => bar.label)], ['bar', ['a', 'b']])
  check('JavaScript', (await box.runCode('const n = 5; n + 1', { language: 'js' })).text, '6')
  check('TypeScript', (await box.runCode('const t: number = 5; t + 2', { language: 'ts' })).text, '7')
  check('R', (await box.runCode('1 + 1', { language: 'r' })).results[0].text, '[1] 2')
  check('Java', (await box.runCode('1 + 1', { language: 'java' })).text, '2')
  check('bash', (await box.runCode('echo $((1 + 1))', { language: 'bash' })).logs.stdout, ['2\n'])
  check('a variable', (await box.runCode("import os; os.environ['V']", { envs: { V: 'w' } })).text, 'w')
}

async function contexts(box) {
  const made = await box.createCodeContext({ language: 'javascript', cwd: '/tmp' })
  check('its place', [made.language, made.cwd], ['javascript', '/tmp'])
  check('it works there', (await box.runCode('process.cwd()', { context: made })).text, '/tmp')
  await box.runCode('globalThis.own = 1', { context: made })
  check('contexts do not share', (await box.runCode('typeof own', { language: 'js' })).text, 'undefined')
  await box.restartCodeContext(made.id)
  check('a restart forgets', (await box.runCode('typeof own', { context: made })).text, 'undefined')
  check('it is listed', (await box.listCodeContexts()).at(-1).id, made.id)
  await box.removeCodeContext(made.id)
  check('it is gone', (await box.listCodeContexts()).some((context) => context.id === made.id), false)
  await raises('code in it', Error, () => box.runCode('1', { context: made }))
}

async function end(box) {
  await raises('a client that waits no longer', Error, () => box.runCode('import time; time.sleep(300)', { timeoutMs: 2000 }))
  check('its code was interrupted', (await box.runCode('1 + 1')).text, '2')
  setTimeout(() => box.kill(), 1500)
  const error = await raises('a sandbox that is killed under it', Error, () => box.runCode('import time; time.sleep(300)', { timeoutMs: 120_000 }))
  check(`is said so (${error.message})`, /killed|timeout/i.test(error.message))
}

const began = performance.now()
const box = await Sandbox.create({ timeoutMs: 240_000 })
try {
  await code(box)
  await contexts(box)
  await end(box)
} finally {
  await box.kill()
}
const { version } = JSON.parse(readFileSync(join(process.argv[2], 'node_modules/@e2b/code-interpreter/package.json')))
console.log(`@e2b/code-interpreter ${version} (JavaScript): ${checked()} checks in ${((performance.now() - began) / 1000).toFixed(1)} s`)
