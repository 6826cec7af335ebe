// Volumes through E2B's unmodified JavaScript SDK against a Belljar server: the control plane, their content, and a sandbox that has one.
//
// Needs only the SDK (found through the directory it is installed in, the first argument) and its environment variables. Ends with status 1 at
// the first difference.

import { createRequire } from 'node:module'
import { join } from 'node:path'

import { check, checked, raises } from '../lab/checks.mjs'

const require = createRequire(join(process.argv[2], 'package.json'))
const { Sandbox, Volume, VolumeNotFoundError, VolumePathNotFoundError } = require('e2b')

const name = `test_${crypto.randomUUID().slice(0, 8)}`
const volume = await Volume.create(name)
check('its name', volume.name, name)
check('it is listed', (await Volume.list()).filter((one) => one.name === name).map((one) => one.volumeId), [volume.volumeId])
check('connecting to it', (await Volume.connect(volume.volumeId)).token, volume.token)
await raises('a name is taken once', Error, () => Volume.create(name))
await raises('there is no such volume', VolumeNotFoundError, () => Volume.getInfo('no-such-volume'))

await volume.writeFile('/hello.txt', 'Hello, World!')
check('read', await volume.readFile('/hello.txt'), 'Hello, World!')
const big = new Uint8Array(3_000_000).map((_, at) => at % 251)
await volume.writeFile('/big.bin', big.buffer)
const back = await volume.readFile('/big.bin', { format: 'bytes' })
check('many bytes', Buffer.compare(Buffer.from(back), Buffer.from(big)), 0)
await raises('what is there stays', Error, () => volume.writeFile('/hello.txt', 'no'))
await volume.writeFile('/hello.txt', 'new', { force: true })
await volume.makeDir('/deep/er', { force: true, mode: 0o750 })
await volume.writeFile('/deep/er/file', 'x', { uid: 1001, gid: 1002, mode: 0o600 })
const info = await volume.getInfo('/deep/er/file')
check('what is told of it', [info.name, info.type, info.path, info.size, info.uid, info.gid, info.mode], ['file', 'file', '/deep/er/file', 1, 1001, 1002, 0o600])
check('changed', (await volume.updateMetadata('/deep/er/file', { mode: 0o644 })).mode, 0o644)
check('listed', (await volume.list('/')).map((entry) => entry.name).sort(), ['big.bin', 'deep', 'hello.txt'])
await volume.remove('/deep')
check('removed', await volume.exists('/deep'), false)
await raises('once', VolumePathNotFoundError, () => volume.remove('/deep'))

const sandbox = await Sandbox.create('base', { timeoutMs: 120_000, volumeMounts: { '/mnt/data': volume } })
check('its mounts', (await sandbox.getInfo()).volumeMounts, [{ name, path: '/mnt/data' }])
check('what was sent is there', (await sandbox.commands.run('cat /mnt/data/hello.txt')).stdout, 'new')
await sandbox.commands.run('echo inside > /mnt/data/inside')
check('what was written comes out', await volume.readFile('/inside'), 'inside\n')
await raises('it is not destroyed under it', Error, () => Volume.destroy(volume.volumeId))
await sandbox.kill()
check('it is destroyed', await Volume.destroy(volume.volumeId))
check('once', await Volume.destroy(volume.volumeId), false)
console.log(`e2b (JavaScript) ${require('e2b/package.json').version}, volumes: ${checked()} checks passed`)
process.exit(0)
