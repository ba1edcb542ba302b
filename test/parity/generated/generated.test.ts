// Generated cases, the same for the same seed (KCP_SEED), compared with a real kube-apiserver: thousands in make
// test-long; KCP_GENERATED: how many of the smallest sort. KCP_GENERATED_ONLY: a pattern of titles.
import { expect } from 'chai'
import { rounds } from '#test/support/index.ts'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { crdsPath } from '#test/parity/crds/sample-crd.ts'
import { prepareRun } from '#test/parity/support/compare-rows.ts'
import { Session } from '#test/parity/support/session.ts'
import { startTwoServers, type TwoServers } from '#test/parity/support/two-servers.ts'
import { differencesOf, type Case } from './compare-cases.ts'
import { knownGeneratedDifferences } from './known-differences.ts'
import { customGroup, customSchema } from './objects.ts'
import { ruleCase, ruledKind, ruledObjectCase } from './rules.ts'
import { configurationCase, installWebhooks, matchedCase } from './webhook-configurations.ts'
import { writersCase } from './writers.ts'

const count = Number(process.env['KCP_GENERATED'] ?? rounds({ short: 12, long: 500 }))
const firstSeed = Number(process.env['KCP_SEED'] ?? 20261)
const only = new RegExp(process.env['KCP_GENERATED_ONLY'] ?? '.')
const ruledWords = ['ruled', 'bound']
const rulesEach = 25
const webhookCount = 24

const madeDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `mades.${customGroup}` },
  spec: {
    group: customGroup,
    scope: 'Namespaced',
    names: { plural: 'mades', singular: 'made', kind: 'Made', listKind: 'MadeList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: customSchema } }],
  },
}

describe('generated cases answered as by a real server', function () {
  this.timeout(1_800_000)
  let servers: TwoServers
  let hooks: WebhookServer
  let run: { id: string; namespace: string }
  let sessions: readonly [Session, Session]

  before(async () => {
    hooks = await startWebhookServer()
    servers = await startTwoServers({ name: 'generated', ourFlags: ['--egress-allow', '127.0.0.0/8'] })
    run = await prepareRun([servers.real, servers.ours])
    sessions = [new Session(servers.real, run), new Session(servers.ours, run)]
  })
  after(async () => {
    await servers[Symbol.asyncDispose]()
    await hooks[Symbol.asyncDispose]()
  })

  const check = async (howMany: number, make: (seed: number) => Case): Promise<void> => {
    const cases = Array.from({ length: howMany }, (_, i) => make(firstSeed + i))
    const told = await differencesOf(cases, servers, { run, known: knownGeneratedDifferences })
    // Mocha shortens long ones.
    for (const difference of told) process.stderr.write(`${difference}\n`)
    expect(told.length, `different of ${howMany} (KCP_SEED=${firstSeed})`).to.equal(0)
  }
  const sort = (title: string, declared: () => Promise<void>): void => {
    if (only.test(title)) it(title, declared)
  }

  sort('several managers write one object', async () => {
    for (const session of sessions) {
      await session.send('POST', crdsPath, { body: madeDefinition, quiet: true })
      await session.untilQuiet(`/apis/${customGroup}/v1/mades`, ({ status }) => status === 200)
    }
    await check(count * 3, writersCase)
  })
  sort('rules of definitions', () => check(count * 2, ruleCase))
  sort('objects under rules', async () => {
    for (const [i, word] of ruledWords.entries()) {
      await ruledKind(word, firstSeed + i, rulesEach).create(sessions)
      await check(count, (seed) => ruledObjectCase(word, seed))
    }
  })
  sort('webhook configurations', () => check(count * 2, configurationCase))
  sort('requests that webhooks are shown', async () => {
    await installWebhooks(sessions, hooks, { seed: firstSeed, count: webhookCount })
    await check(count, matchedCase)
  })
})
