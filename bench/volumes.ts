// Measures the copy of a volume by movers beside `rsync -aAHSX` from a daemon, both over the loopback: the first copy, a
// round after 1 % has changed, and the final round with its comparison. rsync sends without TLS.
//   KCP_BENCH_VOLUME_MIB, KCP_BENCH_VOLUME_FILES: sizes (default 10240 MiB in 10 files, 100,000 small files).
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '#async/index.ts'
import { issueMoverCredentials, type RoundMode } from '#mover/index.ts'
import { freePort } from '#test/support/index.ts'
import { MoverProcess } from '#test/integration/mover/mover-process.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { cpuSeconds } from './process-usage.ts'
import { rounded } from './statistics.ts'

const mebibytes = Number(process.env['KCP_BENCH_VOLUME_MIB'] ?? 10_240)
const smallFiles = Number(process.env['KCP_BENCH_VOLUME_FILES'] ?? 100_000)
const largeFiles = 10
const filesOfFolder = 500

interface Taken {
  readonly seconds: number
  readonly mebibytes: number
  readonly cpuSeconds: number
}

export const volumes: Measurement = {
  name: 'volumes',
  describes: `copy of a volume (${mebibytes} MiB in ${largeFiles} files, ${smallFiles} small files) by movers and by rsync -aAHSX`,
  async run({ signal, say }) {
    const root = mkdtempSync(join(process.env['KCP_BENCH_DIR'] ?? tmpdir(), 'kcp-volumes-'))
    try {
      const numbers: Record<string, number> = {}
      for (const [title, fill, change] of [
        ['large', () => fillLarge(root), () => changeLarge(root)],
        ['small', () => fillSmall(root), () => changeSmall(root)],
      ] as const) {
        for (const folder of ['source', 'target', 'rsync']) mkdirSync(join(root, folder))
        fill()
        Object.assign(numbers, await compare({ root, title, change, signal, say }))
        for (const folder of ['source', 'target', 'rsync', 'source-credentials', 'target-credentials'])
          rmSync(join(root, folder), { recursive: true, force: true })
      }
      return numbers
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  },
}

interface Compared {
  readonly root: string
  readonly title: string
  readonly change: () => void
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

async function compare({ root, title, change, signal, say }: Compared): Promise<Numbers> {
  await using daemon = await startDaemon(root, signal)
  const credentials = await issueMoverCredentials('bench')
  const source = new MoverProcess(root, 'source', credentials)
  const target = new MoverProcess(root, 'target', credentials)
  await source.start()
  await target.start()
  const mover = async (mode: RoundMode): Promise<Taken> => {
    const before = cpuOf(source, target)
    const address = `127.0.0.1:${source.port}`
    const result = await target.control.round({ mode, source: { address } }, () => undefined, signal)
    const cpu = cpuOf(source, target) - before
    return { seconds: result.durationMs / 1000, mebibytes: result.bytesOnWire / 2 ** 20, cpuSeconds: cpu }
  }
  const rsync = (...more: string[]): Taken => daemon.copy(join(root, 'rsync'), more)
  const numbers: Record<string, number> = {}
  const take = (name: string, taken: Taken): void => {
    numbers[`${title}: ${name} seconds`] = rounded(taken.seconds)
    numbers[`${title}: ${name} MiB sent`] = rounded(taken.mebibytes)
    numbers[`${title}: ${name} CPU seconds`] = rounded(taken.cpuSeconds)
    say(
      `${title}, ${name}: ${taken.seconds.toFixed(1)} s, ${taken.mebibytes.toFixed(1)} MiB, ${taken.cpuSeconds.toFixed(1)} CPU s`,
    )
  }
  try {
    take('first copy, rsync', rsync())
    take('first copy, mover', await mover('copy'))
    change()
    execFileSync('sync')
    take('1 % changed, rsync', rsync())
    take('1 % changed, mover', await mover('copy'))
    take('final, rsync', rsync())
    take('final, rsync --checksum', rsync('--checksum'))
    take('final, mover', await mover('final'))
  } finally {
    await source.kill()
    await target.kill()
  }
  return numbers
}

const cpuOf = (...movers: readonly MoverProcess[]): number => cpuSeconds(movers.map(({ pid }) => pid))

/** An rsync daemon that serves the source, with a client that reports times. */
async function startDaemon(root: string, signal: AbortSignal) {
  const port = await freePort()
  const settings = [
    'use chroot = no',
    'uid = 0',
    'gid = 0',
    '[volume]',
    `path = ${join(root, 'source')}`,
    'read only = yes',
  ]
  writeFileSync(join(root, 'rsyncd.conf'), `${settings.join('\n')}\n`)
  const flags = ['--daemon', '--no-detach', '--port', String(port), '--config', join(root, 'rsyncd.conf')]
  const daemon = spawn('rsync', [...flags, '--address', '127.0.0.1'], { stdio: 'ignore' })
  await sleep(1000, signal)
  return {
    copy: (target: string, more: readonly string[]): Taken => {
      const from = performance.now()
      const arguments_ = [
        '-aAHSX',
        '--numeric-ids',
        '--delete',
        '--stats',
        ...more,
        `rsync://127.0.0.1:${port}/volume/`,
        `${target}/`,
      ]
      const before = cpuOfEndedChildren(daemon.pid ?? 0)
      const script = 'TIMEFORMAT="cpu %U %S"; { time rsync "$@"; } 2>&1'
      const text = execFileSync('/bin/bash', ['-c', script, 'bash', ...arguments_], { encoding: 'utf8' })
      const seconds = (performance.now() - from) / 1000
      const count = (name: string): number =>
        Number((new RegExp(`${name}: ([\\d,]+)`).exec(text)?.[1] ?? '0').replaceAll(',', ''))
      const sent = count('Total bytes sent') + count('Total bytes received')
      const [, user, system] = /^cpu ([\d.]+) ([\d.]+)$/m.exec(text) ?? []
      const cpu = Number(user) + Number(system) + cpuOfEndedChildren(daemon.pid ?? 0) - before
      return { seconds, mebibytes: sent / 2 ** 20, cpuSeconds: cpu }
    },
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((resolve) => daemon.once('exit', resolve))
      daemon.kill()
      await ended
    },
  }
}

/** Processor time of the children of a process that have ended, seconds (proc(5): cutime, cstime). */
function cpuOfEndedChildren(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[13]) + Number(fields[14])) / 100
}

function fillLarge(root: string): void {
  const each = Math.ceil(mebibytes / largeFiles)
  for (let i = 0; i < largeFiles; i++)
    execFileSync('dd', [
      'if=/dev/urandom',
      `of=${join(root, 'source', `large-${i}`)}`,
      'bs=1M',
      `count=${each}`,
      'status=none',
    ])
}

/** 1 % of the bytes, in parts of 64 KiB. */
function changeLarge(root: string): void {
  const part = Buffer.alloc(65_536)
  const parts = Math.floor((mebibytes * 2 ** 20) / largeFiles / 100 / part.length)
  const size = Math.ceil(mebibytes / largeFiles) * 2 ** 20
  for (let i = 0; i < largeFiles; i++) {
    const fd = openSync(join(root, 'source', `large-${i}`), 'r+')
    for (let n = 0; n < parts; n++) {
      part.fill(createHash('sha256').update(`${i} ${n}`).digest())
      writeSync(fd, part, 0, part.length, Math.floor(((n + 0.5) * (size / parts)) / 65_536) * 65_536)
    }
    closeSync(fd)
  }
}

const smallPath = (root: string, i: number): string =>
  join(root, 'source', `folder-${Math.floor(i / filesOfFolder)}`, `file-${i}`)

function fillSmall(root: string): void {
  for (let i = 0; i < smallFiles; i++) {
    if (i % filesOfFolder === 0) mkdirSync(join(root, 'source', `folder-${i / filesOfFolder}`))
    writeFileSync(smallPath(root, i), Buffer.alloc(500 + ((i * 7919) % 8000), String(i)))
  }
}

function changeSmall(root: string): void {
  for (let i = 0; i < smallFiles; i += 100)
    writeFileSync(smallPath(root, i), Buffer.alloc(500 + ((i * 31) % 8000), `new ${i}`))
}
