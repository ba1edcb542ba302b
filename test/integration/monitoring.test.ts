// The view of people on call: every metric that an alert or the dashboard asks for is there, Prometheus may read it,
// and the chart's options for it are accepted by a real host.
import { expect } from 'chai'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import {
  ensurePrograms,
  freePort,
  repositoryRoot,
  runCommand,
  startCluster,
  startKcp,
  waitFor,
  type Cluster,
} from '#test/support/index.ts'

const chart = join(repositoryRoot, 'charts/kcp')
const secretName = 'kcp-metrics-client'

interface Rules {
  groups: { rules: { alert: string; expr: string; annotations: { runbook: string } }[] }[]
}
interface Dashboard {
  panels: { targets: { expr: string }[] }[]
}
interface Rendered {
  kind: string
  apiVersion: string
  spec?: Rules
}

const readRules = async (): Promise<Rules> => parse(await readFile(join(chart, 'rules/kcp.yaml'), 'utf8')) as Rules

describe('monitoring', function () {
  this.timeout(180_000)

  describe('of a running installation', () => {
    const stack = new AsyncDisposableStack()
    let host: Cluster
    let address: string
    let port: number
    let operatorPort: number

    before(async () => {
      host = stack.use(await startCluster({ name: 'host', nodes: 0 }))
      address = host.hostAddress
      port = await freePort(address)
      operatorPort = await freePort()
      const env = { KUBECONFIG: host.kubeconfig }
      const where = ['--port', String(port), '--bind-address', address, '--advertise-address', address]
      stack.use(await startKcp(['apiserver', ...where, '--metrics-client-secret', secretName], { env }))
      const operator = stack.use(await startKcp(['operator', '--metrics-port', String(operatorPort)], { env }))
      await waitFor(() => operator.log().includes('kcp operator is ready'), {
        what: 'the operator',
        deadlineMs: 90_000,
      })
    })
    after(() => stack.disposeAsync())

    /** With the client certificate of the Secret, as Prometheus does. */
    const scrape = (path: string) => scrapeAt({ host: address, port, servername: 'kcp-apiserver.kcp-system.svc' }, path)
    const scrapeOperator = (path: string, { anonymous = false } = {}) =>
      scrapeAt({ host: '127.0.0.1', port: operatorPort, servername: 'kcp-operator.kcp-system.svc' }, path, {
        anonymous,
      })
    async function scrapeAt(
      at: { host: string; port: number; servername: string },
      path: string,
      { anonymous = false, secret = secretName } = {},
    ): Promise<{ status: number; text: string }> {
      const { stdout } = await host.kubectl(['get', 'secret', secret, '-n', 'kcp-system', '-o', 'json'])
      const { data } = JSON.parse(stdout) as { data: Record<string, string> }
      const pem = (name: string): string => Buffer.from(data[name] ?? '', 'base64').toString()
      const pair = anonymous ? {} : { cert: pem('tls.crt'), key: pem('tls.key') }
      return new Promise((resolve, reject) => {
        const outgoing = request({ ...at, path, ca: pem('ca.crt'), ...pair }, (response) => {
          response.setEncoding('utf8')
          response
            .toArray()
            .then((chunks) => resolve({ status: response.statusCode ?? 0, text: chunks.join('') }), reject)
        })
        outgoing.on('error', reject)
        outgoing.end()
      })
    }

    it('lets the certificate for Prometheus read the metrics and nothing else', async () => {
      expect(await scrape('/metrics')).to.have.property('status', 200)
      for (const path of ['/clusters/*/api/v1/secrets', '/clusters/acme/api/v1/secrets', '/clusters/acme/metrics'])
        expect(await scrape(path), path).to.have.property('status', 403)
    })

    it('has every metric that an alert or the dashboard asks for', async () => {
      const texts = await Promise.all([
        scrape('/metrics').then(({ text }) => text),
        scrapeOperator('/metrics').then(({ text }) => text),
        host.kubectl(['get', '--raw', '/metrics']).then(({ stdout }) => stdout),
      ])
      const served = new Set(texts.flatMap((text) => [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)))
      const dashboard = JSON.parse(await readFile(join(chart, 'dashboards/kcp.json'), 'utf8')) as Dashboard
      const expressions = [
        ...(await readRules()).groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
        ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
      ]
      const names = expressions.flatMap((expr) => expr.match(/\b(kcp|process|aggregator)_\w+/g) ?? [])
      const wanted = new Set(names.map((name) => name.replace(/_(bucket|count|sum)$/, '')))
      expect(wanted.size).to.be.at.least(10)
      expect([...wanted].filter((name) => !served.has(name))).to.deep.equal([])
    })

    it('keeps the certificate of an embedded store in the cluster it runs in', async () => {
      const rootDir = await mkdtemp(join(tmpdir(), 'kcp-monitored-'))
      stack.defer(() => rm(rootDir, { recursive: true, force: true }))
      const embeddedPort = await freePort()
      const flags = ['--root-dir', rootDir, '--port', String(embeddedPort), '--metrics-client-secret', 'embedded']
      const env = { KUBECONFIG: host.kubeconfig }
      const kcp = stack.use(await startKcp(['start', ...flags], { env }))
      await waitFor(() => kcp.log().includes('kcp is ready'), { what: 'kcp start', deadlineMs: 60_000 })
      const at = { host: '127.0.0.1', port: embeddedPort, servername: 'localhost' }
      expect(await scrapeAt(at, '/metrics', { secret: 'embedded' })).to.have.property('status', 200)
      expect(await scrapeAt(at, '/clusters/root/api/v1/secrets', { secret: 'embedded' })).to.have.property(
        'status',
        403,
      )
    })

    it('answers nothing but metrics on the port of the operator, and not without the certificate', async () => {
      expect(await scrapeOperator('/metrics')).to.have.property('status', 200)
      expect(await scrapeOperator('/debug')).to.have.property('status', 404)
      expect(await scrapeOperator('/metrics', { anonymous: true })).to.have.property('status', 403)
    })

    it('gives the requests of our processes a level of their own in the host', async () => {
      const { helm } = await ensurePrograms(['helm'])
      const template = ['template', 'kcp', chart, '--kube-version', '1.34.3']
      const only = ['--show-only', 'templates/flow-control.yaml']
      const { stdout } = await runCommand(helm, [...template, ...only])
      await host.kubectl(['apply', '-f', '-'], { input: stdout })
      const status = ['-o', 'jsonpath={.status.conditions[?(@.type=="Dangling")].status}']
      await waitFor(async () => (await host.kubectl(['get', 'flowschema', 'kcp', ...status])).stdout === 'False', {
        what: 'the FlowSchema to have its level',
        deadlineMs: 30_000,
      })
    })
  })

  describe('in the chart', () => {
    const all = [
      ...['monitoring.serviceMonitor.enabled=true', 'monitoring.rules.enabled=true', 'networkPolicy.enabled=true'],
      ...['monitoring.dashboard.enabled=true', 'direct.host=kcp.example.com', 'direct.ingress.enabled=true'],
      ...['clusterProfiles.enabled=true', 'direct.service.type=LoadBalancer'],
      ...['direct.gateway.enabled=true', 'direct.gateway.parentRefs[0].name=edge'],
    ]
    const allValues = all.flatMap((setting) => ['--set', setting])

    async function render(...more: string[]): Promise<Rendered[]> {
      const { helm } = await ensurePrograms(['helm'])
      const { stdout } = await runCommand(helm, ['template', 'kcp', chart, ...more])
      return parseAllDocuments(stdout).map((document) => document.toJS() as Rendered)
    }

    it('lints with every option', async () => {
      const { helm } = await ensurePrograms(['helm'])
      await runCommand(helm, ['lint', '--strict', chart, ...allValues])
    })

    for (const version of ['1.30.0', '1.34.3']) {
      it(`renders every option for Kubernetes ${version}, and none of them by default`, async () => {
        const kinds = ['ServiceMonitor', 'PodMonitor', 'PrometheusRule', 'Ingress', 'TLSRoute']
        const rendered = (await render('--kube-version', version, ...allValues)).map(({ kind }) => kind)
        expect(rendered).to.include.members([...kinds, 'ConfigMap', 'FlowSchema', 'PriorityLevelConfiguration'])
        expect((await render('--kube-version', version)).map(({ kind }) => kind)).not.to.include.oneOf(kinds)
      })
    }

    it('lets the operator write ClusterProfiles where that is enabled alone', async () => {
      const textOf = async (...more: string[]): Promise<string> =>
        JSON.stringify(await render('--kube-version', '1.34.3', ...more))
      for (const part of ['"--cluster-profiles"', '"kind":"RoleBinding","metadata":{"name":"kcp-cluster-profiles"']) {
        expect(await textOf(), part).not.to.contain(part)
        expect(await textOf('--set', 'clusterProfiles.enabled=true'), part).to.contain(part)
      }
    })

    it('has every process send traces where an endpoint is set, and none by default', async () => {
      const argsOf = async (...more: string[]): Promise<string[]> =>
        (await render('--kube-version', '1.34.3', ...more))
          .filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
          .map((workload) => JSON.stringify(workload))
      // As from a file of values, where this number is a float.
      const tracing = { endpoint: 'http://collector:4318', samplingRatePerMillion: 1_000_000 }
      const flags = '"--tracing-endpoint=http://collector:4318","--tracing-sampling-rate-per-million=1000000"'
      for (const { mode, workloads } of [
        { mode: 'host', workloads: 2 },
        { mode: 'embedded', workloads: 1 },
      ]) {
        const storage = ['--set', `storage.mode=${mode}`]
        const traced = await argsOf(...storage, '--set-json', `tracing=${JSON.stringify(tracing)}`)
        expect(traced).to.have.length(workloads)
        for (const text of traced) expect(text).to.contain(flags)
        for (const text of await argsOf(...storage)) expect(text).not.to.contain('--tracing')
      }
    })

    it('carries the rules as they are tested, each with its text in the runbook', async () => {
      const rendered = await render('--kube-version', '1.34.3', ...allValues)
      const rules = await readRules()
      expect(rendered.find(({ kind }) => kind === 'PrometheusRule')?.spec).to.deep.equal(rules)
      const runbook = await readFile(join(repositoryRoot, 'docs/runbook.md'), 'utf8')
      for (const { alert, annotations } of rules.groups.flatMap((group) => group.rules)) {
        expect(runbook).to.contain(`\n## ${alert}\n`)
        expect(annotations.runbook).to.equal(`docs/runbook.md#${alert.toLowerCase()}`)
      }
    })

    it('has a ServiceMonitor of an embedded store, and no rights in the host beside those for its certificate', async () => {
      const embedded = ['--set', 'storage.mode=embedded,monitoring.serviceMonitor.enabled=true']
      const rendered = await render('--kube-version', '1.34.3', ...embedded)
      const kinds = rendered.map(({ kind }) => kind)
      expect(kinds).to.include('ServiceMonitor')
      expect(kinds).not.to.include.oneOf(['PodMonitor', 'Deployment', 'ClusterRoleBinding'])
      const text = JSON.stringify(rendered.find(({ kind }) => kind === 'StatefulSet'))
      expect(text).to.contain('--metrics-client-secret=kcp-metrics-client')
    })
  })
})
