// The process that holds the watches of a measurement: forked, told which watches to open, asked for the received
// events.
import { connectionOf } from './connection.ts'
import { openRawWatches, type RawWatches } from './raw-watches.ts'
import {
  atDigits,
  numberDigits,
  type FromWatchClient,
  type Received,
  type OpenWatches,
  type ToWatchClient,
} from './watch-protocol.ts'

const marker = Buffer.from('"at":"')
/** Histogram of lags in steps of 1 ms; slower ones count in the last step. */
const lags = new Float64Array(60_000)
let worst = 0
let counts = new Float64Array(0)
let sums = new Float64Array(0)
const rests = new Map<number, Buffer>()
const open: RawWatches[] = []

function digits(piece: Buffer, from: number, length: number): number {
  let value = 0
  for (let i = from; i < from + length; i++) value = value * 10 + ((piece[i] ?? 48) - 48)
  return value
}

function heard(stream: number, arrived: Buffer): void {
  const now = Number(process.hrtime.bigint() / 1000n)
  const rest = rests.get(stream)
  const piece = rest === undefined ? arrived : Buffer.concat([rest, arrived])
  let from = 0
  for (;;) {
    const at = piece.indexOf(marker, from)
    if (at < 0 || at + marker.length + atDigits + 1 + numberDigits > piece.length) break
    from = at + marker.length
    const lag = (now - digits(piece, from, atDigits)) / 1000
    const step = Math.min(lags.length - 1, Math.max(0, Math.floor(lag)))
    lags[step] = (lags[step] ?? 0) + 1
    if (lag > worst) worst = lag
    counts[stream] = (counts[stream] ?? 0) + 1
    sums[stream] = (sums[stream] ?? 0) + digits(piece, from + atDigits + 1, numberDigits)
  }
  // The rest of an event comes with the next chunk.
  if (piece.at(-1) === 0x0a) rests.delete(stream)
  else rests.set(stream, Buffer.from(piece.subarray(from)))
}

async function openAll({ kubeconfigs, connections, watchesEach, path }: OpenWatches): Promise<number> {
  const total = kubeconfigs.length * connections * watchesEach
  counts = new Float64Array(total)
  sums = new Float64Array(total)
  let first = 0
  for (const connection of kubeconfigs.map(connectionOf)) {
    for (let i = 0; i < connections; i++) {
      const offset = first
      const paths = Array.from({ length: watchesEach }, () => path)
      open.push(await openRawWatches(connection, { paths, onData: (index, piece) => heard(offset + index, piece) }))
      first += watchesEach
    }
  }
  return total
}

function quantileOf(part: number): number {
  const total = lags.reduce((sum, count) => sum + count, 0)
  let seen = 0
  for (const [ms, count] of lags.entries()) {
    seen += count
    if (seen >= part * total) return ms + 1
  }
  return Number.NaN
}

function report(): Received {
  return {
    ended: open.flatMap(({ ended }) => ended),
    events: counts.reduce((sum, count) => sum + count, 0),
    fewest: counts.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
    most: counts.reduce((a, b) => Math.max(a, b), 0),
    uneven: sums.filter((sum) => sum !== sums[0]).length,
    p50: quantileOf(0.5),
    p99: quantileOf(0.99),
    max: worst,
  }
}

const response = (message: FromWatchClient): void => void process.send?.(message)

process.on('message', (message: ToWatchClient) => {
  if (message === 'report') {
    response({ heard: report() })
    return
  }
  openAll(message.open).then(
    (opened) => response({ opened }),
    (error: unknown) => response({ failed: String(error) }),
  )
})
