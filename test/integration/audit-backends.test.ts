// The audit log of an installation: its policy file, a full disk and a webhook that hangs; and `kcp audit`.
import { expect } from 'chai'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runKcp, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

interface Event {
  readonly auditID: string
  readonly level: string
  readonly stage: string
  readonly requestObject?: unknown
}

const maps = '/api/v1/namespaces/default/configmaps'
const policyOf = (...rules: readonly unknown[]): string =>
  JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules })

describe('the audit log of an installation', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const received: Event[] = []
  let hangs = false
  let policy: string
  let kcp: KcpInstance
  let acme: Tenant

  before(async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-audit-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const server = createServer((request, response) => {
      void (async () => {
        const parts: Buffer[] = []
        for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
        if (hangs) return
        received.push(...(JSON.parse(Buffer.concat(parts).toString()) as { items: Event[] }).items)
        response.end('{}')
      })()
    })
    stack.defer(() => server.closeAllConnections())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    stack.defer(() => void server.close())
    const { port } = server.address() as AddressInfo
    const webhook = join(dir, 'webhook.yaml')
    writeFileSync(
      webhook,
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'audit', users: [{ name: 'audit', user: {} }] },
        clusters: [{ name: 'audit', cluster: { server: `http://127.0.0.1:${port}/events` } }],
        contexts: [{ name: 'audit', context: { cluster: 'audit', user: 'audit' } }],
      }),
    )
    policy = join(dir, 'policy.yaml')
    const onlyMaps = { level: 'Request', verbs: ['create'], resources: [{ resources: ['configmaps'] }] }
    writeFileSync(policy, policyOf(onlyMaps, { level: 'None' }))
    kcp = stack.use(
      await startInstance([
        ...['--audit-policy-file', policy, '--audit-log-path', '/dev/full'],
        ...['--audit-webhook-config-file', webhook, '--audit-webhook-batch-max-wait', '1s'],
        ...['--audit-webhook-batch-buffer-size', '20', '--audit-webhook-initial-backoff', '1s'],
        '--audit-webhook-truncate-enabled',
      ]),
    )
    acme = await kcp.tenant('acme')
  })
  after(() => stack.disposeAsync())

  let attempts = 0
  const create = async (name: string, data: object = {}): Promise<void> => {
    const headers = ['audit-id', name]
    const { status, text } = await acme.http.request('POST', acme.base + maps, {
      headers,
      body: { metadata: { name }, data },
    })
    expect(status, text).to.equal(201)
  }
  const arrived = (id: string): Promise<Event> =>
    waitFor(() => Promise.resolve(received.find(({ auditID }) => auditID === id)), {
      what: `the event of ${id}`,
      deadlineMs: 20_000,
    })
  /** The first event that arrives of several creates: the small buffer of the webhook may be full of other events. */
  const oneOf = (prefix: string): Promise<Event> =>
    waitFor(
      async () => {
        await create(`${prefix}-${++attempts}`)
        return received.find(({ auditID }) => auditID.startsWith(`${prefix}-`))
      },
      { what: `an event of ${prefix}`, deadlineMs: 30_000, intervalMs: 1000 },
    )
  const metric = async (name: string): Promise<number> => {
    const { text } = await kcp.admin.http.request('GET', '/metrics')
    return Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1] ?? 0)
  }

  it('has what its policy says, in a webhook', async () => {
    await create('one', { a: 'b' })
    const event = await arrived('one')
    expect(event).to.deep.include({ level: 'Request', stage: 'ResponseComplete' })
    expect(event.requestObject).to.have.nested.property('data.a', 'b')
    await create('large', { a: 'x'.repeat(200_000) })
    expect(await arrived('large')).not.to.have.property('requestObject')
    expect(received.every(({ level }) => level === 'Request')).to.equal(true)
  })

  it('goes on where the disk is full: lines are lost and counted, and told once', async () => {
    for (let i = 0; i < 50; i++) await create(`full-${i}`)
    await waitFor(async () => (await metric('kcp_audit_lines_dropped_total')) > 50, {
      what: 'the lost lines',
      deadlineMs: 10_000,
    })
    const told = kcp.process
      .log()
      .split('\n')
      .filter((line) => line.includes('audit lines are lost'))
    expect(told).to.have.length(1)
    expect(told[0]).to.include('ENOSPC')
  })

  it('takes a new policy, and keeps the one before where the new one has an error', async () => {
    const taken = await metric('kcp_audit_policy_reloads_total{result="success"}')
    writeFileSync(policy, policyOf({ level: 'Everything' }))
    // A file that is read while it is written counts, too.
    await waitFor(async () => (await metric('kcp_audit_policy_reloads_total{result="failure"}')) >= 1, {
      what: 'the refusal of the policy',
      deadlineMs: 10_000,
    })
    expect(kcp.process.log()).to.include('rules[0].level: Unsupported value')
    expect((await oneOf('still')).level).to.equal('Request')
    writeFileSync(policy, policyOf({ level: 'Metadata', resources: [{ resources: ['configmaps'] }] }))
    await waitFor(async () => (await metric('kcp_audit_policy_reloads_total{result="success"}')) > taken, {
      what: 'the new policy',
      deadlineMs: 10_000,
    })
    expect((await oneOf('new')).level).to.equal('Metadata')
  })

  it('makes nobody wait for a webhook that hangs', async () => {
    hangs = true
    const waited: number[] = []
    for (let i = 0; i < 300; i++) {
      const began = performance.now()
      await create(`hanging-${i}`)
      waited.push(performance.now() - began)
    }
    expect(Math.max(...waited)).to.be.lessThan(10_000)
    expect(await metric('kcp_audit_webhook_events_dropped_total')).to.be.greaterThan(50)
    hangs = false
  })

  it('does not start with a policy that has an error, or without its webhook', async () => {
    const broken = `${policy}.broken`
    writeFileSync(broken, policyOf({ level: 'Everything' }))
    const start = ['start', '--root-dir', join(kcp.rootDir, 'none'), '--audit-log', '-']
    const refused = await runKcp([...start, '--audit-policy-file', broken], { expectCode: 1 })
    expect(refused.stderr).to.match(/--audit-policy-file .*rules\[0\]\.level: Unsupported value: "Everything"/)
    const missing = await runKcp([...start, '--audit-webhook-config-file', `${policy}.none`], { expectCode: 1 })
    expect(missing.stderr).to.include('--audit-webhook-config-file')
  })

  it('is not that of a logical cluster, which kcp audit shows', async () => {
    const audit = { readable: true, rules: [{ level: 'None', nonResourceURLs: ['*'] }, { level: 'Metadata' }] }
    await kcp.admin.kubectl(['patch', 'lc/acme', '--type=merge', '-p', JSON.stringify({ spec: { audit } })])
    await waitFor(async () => (await acme.http.request('GET', `${acme.base}/audit`)).status === 200, {
      what: 'the log of acme',
      deadlineMs: 10_000,
    })
    await create('shown')
    await acme.kubectl(['delete', 'configmap', 'shown'])
    const here = ['--root-dir', kcp.rootDir]
    const table = await runKcp(['audit', 'acme', ...here, '--resource', 'configmaps', '--since', '10m'])
    expect(table.stdout).to.match(/^TIME +USER +VERB +CODE +OBJECT +REQUEST\n/)
    expect(table.stdout).to.match(/ create +201 +default\/configmaps\/shown /)
    expect(table.stdout).to.match(/ delete +200 +default\/configmaps\/shown /)
    const json = await runKcp(['audit', 'acme', ...here, '--verb', 'delete', '-o', 'json', '--user', 'nobody'])
    expect([json.code, json.stdout]).to.deep.equal([0, ''])
    const own = await runKcp(['audit', '--kubeconfig', acme.kubeconfig, '--verb', 'delete', '-o', 'json'])
    expect(
      own.stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { verb: string }).verb),
    ).to.include('delete')
    const beta = await kcp.tenant('beta')
    const refused = await runKcp(['audit', 'beta', ...here], { expectCode: 1 })
    expect([refused.code, refused.stdout]).to.deep.equal([1, ''])
    expect(refused.stderr).to.include('an admin sets spec.audit.readable of its LogicalCluster')
    const crossed = await beta.http.request('GET', `${acme.base}/audit`)
    expect(crossed.status).to.be.oneOf([401, 403])
  })
})
