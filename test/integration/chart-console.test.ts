// What the chart makes of the values of the console.
import { expect } from 'chai'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { ensurePrograms, repositoryRoot, runCommand } from '#test/support/index.ts'

type Rendered = KubeObject & {
  spec?: { template?: { spec: { containers: { args?: string[] }[] } } }
}

describe('the console of the chart', function () {
  this.timeout(60_000)

  const render = async (...set: string[]): Promise<{ args: string[]; ingresses: Rendered['spec'][] }> => {
    const { helm } = await ensurePrograms(['helm'])
    const values = set.flatMap((one) => ['--set', one])
    const args = ['template', 'kcp', join(repositoryRoot, 'charts/kcp'), '--kube-version', '1.34.3', ...values]
    const { stdout } = await runCommand(helm, args)
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Rendered | null)
    const programs = objects.flatMap((object) => object?.spec?.template?.spec.containers ?? [])
    return {
      args: programs.flatMap((container) => container.args ?? []).filter((arg) => arg.includes('console')),
      ingresses: objects.flatMap((object) => (object?.kind === 'Ingress' ? [object.spec] : [])),
    }
  }

  it('needs nothing to be served at the direct listener', async () => {
    expect(await render()).to.deep.equal({ args: [], ingresses: [] })
  })

  for (const mode of ['host', 'embedded'])
    it(`is switched off, storage.mode ${mode}`, async () => {
      expect((await render('console.enabled=false', `storage.mode=${mode}`)).args).to.deep.equal(['--no-console'])
    })

  it('has an Ingress for its path alone, and tells the server its origin', async () => {
    const secret = 'console.ingress.tlsSecretName=console-tls'
    const found = await render('console.host=console.example.com', 'console.ingress.enabled=true', secret)
    const backend = { service: { name: 'kcp-apiserver', port: { name: 'https' } } }
    const paths = [{ path: '/console', pathType: 'Prefix', backend }]
    expect(found).to.deep.equal({
      args: ['--console-origin=https://console.example.com'],
      ingresses: [
        {
          tls: [{ hosts: ['console.example.com'], secretName: 'console-tls' }],
          rules: [{ host: 'console.example.com', http: { paths } }],
        },
      ],
    })
  })

  it('refuses an Ingress without a host name', async () => {
    const error = await render('console.ingress.enabled=true').catch((reason: unknown) => String(reason))
    expect(error).to.include('console.host: the name of the Ingress')
  })
})
