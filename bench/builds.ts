// Compares this build with that of another checkout. The speed of a shared machine changes by half within minutes, so
// both are measured in short turns: only then is a difference of a few percent visible.   KCP_BENCH_OTHER=DIR node
// bench/main.ts --only builds
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { kcpProgram } from '#test/support/index.ts'
import { load, openEndpoint, type LoadRequest } from './load.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { cpuSeconds, withChildren } from './process-usage.ts'
import { configMap, fill } from './side-by-side.ts'
import { median, rounded } from './statistics.ts'
import { withMember, type Bench } from './sync.ts'

const clients = 32
const listed = 500
const roundsOfRequests = 12
const secondsPerRound = 2
const roundsOfDeployments = 12
const deploymentsPerRound = 8

/** Names of the two builds in the results. */
const names = ['this', 'other'] as const
type Name = (typeof names)[number]
/** One value of each round. */
type Values = Record<Name, number[]>

/** Processor time per request and per Deployment of both builds, and their ratios. */
export const builds: Measurement = {
  name: 'builds',
  describes: 'GET, LIST of 500, create and sync, by turns with the build of the checkout that KCP_BENCH_OTHER names',
  async run(context) {
    const programs = { this: kcpProgram, other: otherProgram() }
    return { ...(await compareRequests(programs, context.say)), ...(await compareSync(programs, context)) }
  },
}

/** `bin/kcp` of both. */
type Programs = Readonly<Record<Name, string>>

function otherProgram(): string {
  const dir = process.env['KCP_BENCH_OTHER'] ?? ''
  const program = join(dir, 'bin', 'kcp')
  if (dir === '' || !existsSync(join(dir, 'dist', 'src', 'cli', 'main.js')) || !existsSync(program))
    throw new Error('set KCP_BENCH_OTHER to another checkout, and run `make build` in it')
  return program
}

async function compareRequests(programs: Programs, say: (line: string) => void): Promise<Numbers> {
  await using stack = new AsyncDisposableStack()
  const contenders = []
  for (const name of names) {
    const kcp = stack.use(await startKcpUnderTest({ program: programs[name] }))
    const endpoint = stack.use(openEndpoint(await kcp.tenantKubeconfig('bench'), { connections: clients }))
    for (const namespace of ['listed', 'writes'])
      await endpoint.json('POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name: namespace } }))
    await fill(endpoint, '/api/v1/namespaces/listed/configmaps', listed)
    contenders.push({ name, endpoint, pids: withChildren(kcp.pid) })
  }
  let created = 0
  const works: Readonly<Record<string, () => LoadRequest>> = {
    GET: () => ['GET', '/api/v1/namespaces/listed/configmaps/list-0'],
    'LIST 500': () => ['GET', '/api/v1/namespaces/listed/configmaps'],
    create: () => ['POST', '/api/v1/namespaces/writes/configmaps', configMap(`c-${++created}`)],
  }
  const numbers: Record<string, number> = {}
  for (const [work, next] of Object.entries(works)) {
    const values: Values = { this: [], other: [] }
    for (let round = 0; round < roundsOfRequests; round++)
      for (const { name, endpoint, pids } of round % 2 === 0 ? contenders : contenders.toReversed()) {
        const before = cpuSeconds(pids)
        const { requests } = await load(endpoint, { clients, seconds: secondsPerRound, next })
        values[name].push(((cpuSeconds(pids) - before) * 1e6) / requests)
      }
    Object.assign(numbers, compared(`${work}: CPU µs per request`, values))
    say(`${work}: ${String(numbers[`${work}: CPU µs per request, this to other`])} times the processor time`)
  }
  return numbers
}

async function compareSync(programs: Programs, context: Parameters<Measurement['run']>[0]): Promise<Numbers> {
  const values: Record<string, Values> = {}
  const add = (name: Name, measured: Numbers): void => {
    for (const [key, value] of Object.entries(measured)) (values[key] ??= { this: [], other: [] })[name].push(value)
  }
  const rounds = async (benches: Readonly<Record<Name, Bench>>): Promise<void> => {
    for (const name of names) {
      await benches[name].namespace('one')
      await benches[name].oneByOne(deploymentsPerRound)
    }
    for (let round = 0; round < roundsOfDeployments; round++)
      for (const name of round % 2 === 0 ? names : names.toReversed())
        add(name, await benches[name].oneByOne(deploymentsPerRound))
    for (const name of names) add(name, await benches[name].manyMaps())
  }
  await withMember({ ...context, name: 'thismember', program: programs.this }, (ours) =>
    withMember({ ...context, name: 'othermember', program: programs.other }, async (other) => {
      await rounds({ this: ours, other })
      return {}
    }),
  )
  return Object.assign({}, ...Object.entries(values).map(([key, both]) => compared(key, both))) as Numbers
}

function compared(what: string, values: Values): Numbers {
  const [ours, other] = [median(values.this), median(values.other)]
  return {
    [`${what}, this`]: rounded(ours),
    [`${what}, other`]: rounded(other),
    [`${what}, this to other`]: rounded(ours / other),
  }
}
