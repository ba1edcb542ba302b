// Compares conversion webhooks of a real kube-apiserver and of a logical cluster: both call the same webhook server.
import { expect } from 'chai'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { knownConversionDifferences } from './known-differences.ts'
import { conversionRows } from './rows.ts'

describe("conversion webhooks equal a real server's", function () {
  this.timeout(180_000) // includes the start of both servers
  let server: WebhookServer
  before(async () => {
    server = await startWebhookServer()
  })
  after(() => server[Symbol.asyncDispose]())
  it('tells the webhook the same timeout', () => {
    const queries = server.asked.filter(({ path }) => path.startsWith('/convert')).map(({ query }) => query)
    expect([...new Set(queries)]).to.deep.equal(['?timeout=30s'])
  })
  const rows = conversionRows(() => server)
  compareRows(rows, {
    name: 'conversion',
    known: knownConversionDifferences,
    ourFlags: ['--egress-allow', '127.0.0.0/8'],
    // A real server waits two seconds before it creates the first object of a new definition.
    ahead: new Set(rows),
  })
})
