// The kernel for JavaScript and TypeScript: one line of JSON in, events on descriptor 3. What the code declares at its top level stays for the next
// run and may be declared again there, imports included; `await` works at the top level.
'use strict'

const fs = require('fs')
const path = require('path')
const readline = require('readline')
const util = require('util')
const vm = require('vm')
const { createRequire, isBuiltin } = require('module')
const { pathToFileURL } = require('url')

const EVENTS = 3
const typescript = process.argv.includes('--typescript')
const acorn = require('acorn')

const send = (event) => fs.writeSync(EVENTS, JSON.stringify(event) + '\n')
const inspect = (value) => util.inspect(value, { depth: 6, maxArrayLength: 1000 })

for (const name of ['stdout', 'stderr']) {
  process[name].write = (chunk, encoding, done) => {
    send({ event: name, text: Buffer.isBuffer(chunk) ? chunk.toString() : chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : String(chunk) })
    const after = typeof encoding === 'function' ? encoding : done
    if (after) process.nextTick(after)
    return true
  }
}

// Shows something that is no text: an object of MIME types and their content.
globalThis.display = (data) => send({ event: 'result', main: false, data })
Object.defineProperty(globalThis, 'require', { get: () => createRequire(path.join(process.cwd(), 'code.js')), configurable: true })
globalThis.module = { exports: {} }
globalThis.exports = globalThis.module.exports

// Looks for a module from the working directory, not from where this file is.
const load = (name) => {
  if (isBuiltin(name) || /^[a-z]+:/.test(name)) return import(name)
  if (/^[./]/.test(name)) return import(pathToFileURL(path.resolve(process.cwd(), name)))
  try {
    return import(pathToFileURL(globalThis.require.resolve(name)))
  } catch (error) {
    // Modules without a form for `require` are found by their own description.
    for (let at = process.cwd(); ; at = path.dirname(at)) {
      const file = path.join(at, 'node_modules', name, 'package.json')
      if (fs.existsSync(file)) {
        const description = JSON.parse(fs.readFileSync(file))
        const entry = description.exports?.['.']?.import ?? description.exports?.import ?? description.exports?.['.'] ?? description.exports ?? description.module
        const chosen = typeof entry === 'object' ? entry?.default : entry
        if (typeof chosen === 'string') return import(pathToFileURL(path.join(path.dirname(file), chosen)))
      }
      if (at === path.dirname(at)) throw error
    }
  }
}
Object.defineProperty(globalThis, '__belljarImport', { value: load })

const parse = (code) =>
  acorn.parse(code, { ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true, allowImportExportEverywhere: true, allowReturnOutsideFunction: false, allowHashBang: true })

const names = (pattern, found = []) => {
  if (!pattern) return found
  if (pattern.type === 'Identifier') found.push(pattern.name)
  else if (pattern.type === 'ObjectPattern') pattern.properties.forEach((property) => names(property.value ?? property.argument, found))
  else if (pattern.type === 'ArrayPattern') pattern.elements.forEach((element) => names(element, found))
  else names(pattern.left ?? pattern.argument, found)
  return found
}

const awaits = (node) => {
  if (!node || typeof node.type !== 'string') return false
  if (node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await)) return true
  if (/Function/.test(node.type)) return false
  return Object.values(node).some((part) => (Array.isArray(part) ? part.some(awaits) : part && typeof part === 'object' && awaits(part)))
}

const imported = (node) => {
  const from = `await __belljarImport(${node.source.raw})`
  if (node.specifiers.length === 0) return { code: from, declared: [] }
  const parts = node.specifiers.map((one) => {
    const local = one.local.name
    if (one.type === 'ImportNamespaceSpecifier') return `${local} = __module`
    const key = one.type === 'ImportDefaultSpecifier' ? 'default' : one.imported.name ?? one.imported.value
    return `${local} = __module[${JSON.stringify(key)}]`
  })
  return { code: `{ const __module = ${from}; ${parts.join('; ')} }`, declared: node.specifiers.map((one) => one.local.name) }
}

// Rewrites the code so that all it declares is the global object's, and its last expression is what comes back.
const prepare = (code) => {
  const program = parse(code)
  const waits = program.body.some((node) => node.type === 'ImportDeclaration' || awaits(node))
  const declared = new Set()
  const edits = []
  const last = program.body[program.body.length - 1]
  for (const node of program.body) {
    if (node.type === 'ImportDeclaration') {
      const { code: replacement, declared: found } = imported(node)
      found.forEach((name) => declared.add(name))
      edits.push([node.start, node.end, replacement + ';'])
    } else if (/^Export/.test(node.type)) {
      if (node.declaration && node.type === 'ExportNamedDeclaration') edits.push([node.start, node.declaration.start, ''])
      else edits.push([node.start, node.end, ''])
    } else if (node.type === 'VariableDeclaration') {
      node.declarations.forEach((one) => names(one.id).forEach((name) => declared.add(name)))
      if (waits) {
        const parts = node.declarations.filter((one) => one.init || node.kind !== 'var').map((one) => `(${code.slice(one.id.start, one.id.end)} = ${one.init ? code.slice(one.init.start, one.init.end) : 'undefined'})`)
        edits.push([node.start, node.end, parts.join(', ') + ';'])
      } else if (node.kind !== 'var') edits.push([node.start, node.start + node.kind.length, 'var'])
    } else if (node.type === 'ClassDeclaration') {
      declared.add(node.id.name)
      edits.push([node.start, node.start, `${waits ? '' : 'var '}${node.id.name} = `])
    } else if (node.type === 'FunctionDeclaration' && waits) {
      declared.add(node.id.name)
      edits.push([node.end, node.end, `; globalThis.${node.id.name} = ${node.id.name};`])
    } else if (node === last && waits && node.type === 'ExpressionStatement') {
      edits.push([node.start, node.end, `return (${code.slice(node.expression.start, node.expression.end)});`])
    }
  }
  let text = code
  for (const [start, end, replacement] of edits.sort((a, b) => b[0] - a[0] || b[1] - a[1])) text = text.slice(0, start) + replacement + text.slice(end)
  if (!waits) return { text, waits }
  const known = [...declared].map((name) => `var ${name};`).join(' ')
  return { text: `${known} (async () => { ${text}\n})()`, waits }
}

const withoutTypes = (code) => {
  const ts = require('typescript')
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true, experimentalDecorators: true }
  const made = ts.transpileModule(code, { compilerOptions: options, reportDiagnostics: true })
  const wrong = (made.diagnostics ?? []).find((one) => one.category === ts.DiagnosticCategory.Error)
  if (wrong) throw new SyntaxError(ts.flattenDiagnosticMessageText(wrong.messageText, '\n'))
  return made.outputText.replace(/^export \{\};\s*$/m, '')
}

let interrupt = null
process.on('SIGINT', () => interrupt?.())
const interrupted = () => Object.assign(new Error('Execution interrupted'), { name: 'Interrupted' })

let runs = 0
const run = async (code) => {
  const { text, waits } = prepare(typescript ? withoutTypes(code) : code)
  const options = { filename: `cell${++runs}.${typescript ? 'ts' : 'js'}`, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }
  const stopped = new Promise((_resolve, reject) => { interrupt = () => reject(interrupted()) })
  // Nobody waits for it unless there is something to wait for.
  stopped.catch(() => {})
  try {
    const value = vm.runInThisContext(text, { ...options, breakOnSigint: true })
    return waits ? await Promise.race([value, stopped]) : value
  } catch (error) {
    throw error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? interrupted() : error
  } finally {
    interrupt = null
  }
}

const set = (values) => {
  for (const [name, value] of Object.entries(values ?? {})) {
    if (value === null) delete process.env[name]
    else process.env[name] = value
  }
}

const told = (error) => {
  const real = error instanceof Error || (error && typeof error === 'object' && 'message' in error)
  const name = (real && error.name) || (error === null ? 'null' : typeof error)
  const value = real ? String(error.message) : inspect(error)
  const traceback = (real && typeof error.stack === 'string' ? error.stack : `${name}: ${value}`).split('\n').filter((line) => !line.includes(path.dirname(__dirname)) && !line.includes('node:vm'))
  send({ event: 'error', name, value, traceback })
}

process.on('uncaughtException', (error) => send({ event: 'stderr', text: `Uncaught ${inspect(error)}\n` }))
process.on('unhandledRejection', (error) => send({ event: 'stderr', text: `Unhandled rejection ${inspect(error)}\n` }))

const attend = async (line) => {
  const { code, env, after } = JSON.parse(line)
  try {
    set(env)
    const value = await run(code)
    if (value !== undefined) {
      const data = { 'text/plain': inspect(value) }
      send({ event: 'result', main: true, data })
    }
  } catch (error) {
    told(error)
  } finally {
    set(after)
    send({ event: 'done' })
  }
}

let turn = Promise.resolve()
readline.createInterface({ input: process.stdin, terminal: false }).on('line', (line) => { turn = turn.then(() => attend(line)) })
send({ event: 'ready' })
