import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import { type AddressInfo } from 'node:net'
import { TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { CertificateAuthority } from './certificates.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { hostService } from './host-service.ts'
import { clusterPrograms, ensurePrograms } from './programs.ts'
import { waitFor } from './wait-for.ts'

describe('the aggregator of a test cluster', function () {
  this.timeout(60_000)
  let cluster: Cluster
  let server: Server
  before(async function () {
    this.timeout(60 * 60_000)
    await ensurePrograms(clusterPrograms)
    cluster = await startCluster({ name: 'host' })
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await cluster.stop()
  })

  it('forwards a request to a process of this machine, with its user, under the front-proxy authority', async () => {
    const ca = await CertificateAuthority.create('backend-ca')
    const serving = await ca.issue({ commonName: 'echo', hosts: ['echo.default.svc'] })
    const tls = { key: serving.key, cert: serving.certificate, ca: cluster.frontProxyCa.certificate }
    server = createServer({ ...tls, requestCert: true, rejectUnauthorized: true }, (request, response) => {
      const { socket } = request
      response.setHeader('Content-Type', 'application/json')
      response.end(
        JSON.stringify({
          caller: socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : undefined,
          user: request.headers['x-remote-user'],
          groups: request.headers['x-remote-group'],
        }),
      )
    }).listen(0, cluster.hostAddress)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const service = { name: 'echo', namespace: 'default' }
    await cluster.kubectl(['apply', '-f', '-'], {
      input: hostService({ ...service, address: cluster.hostAddress, port }),
    })
    const apiService = {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1.echo.test' },
      spec: {
        ...{ group: 'echo.test', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 10, service },
        caBundle: Buffer.from(ca.certificate).toString('base64'),
      },
    }
    await cluster.kubectl(['apply', '-f', '-'], { input: apiService })
    const admin = ['create', 'clusterrolebinding', 'alice', '--clusterrole=cluster-admin', '--user=alice']
    await cluster.kubectl(admin)
    const alice = await cluster.kubeconfigFor({ commonName: 'alice', organizations: ['team-a'] })
    const answer = await waitFor(
      () => cluster.kubectl(['--kubeconfig', alice, 'get', '--raw', '/apis/echo.test/v1/things']),
      { what: 'the aggregated API to answer', deadlineMs: 20_000 },
    )
    expect(JSON.parse(answer.stdout)).to.deep.equal({
      caller: 'front-proxy-client',
      user: 'alice',
      groups: 'team-a, system:authenticated',
    })
  })
})
