// What the chart makes of the values of sign-in.
import { expect } from 'chai'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseConfiguration } from '#virtualapi/auth/sign-in/index.ts'
import { ensurePrograms, repositoryRoot, runCommand } from '#test/support/index.ts'

interface Container {
  readonly args?: string[]
  readonly volumeMounts?: { readonly name: string; readonly mountPath: string }[]
}
type Rendered = KubeObject & {
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly template?: { readonly spec: { readonly containers: Container[]; readonly volumes: { name: string }[] } }
  }
}

describe('sign-in with the chart', function () {
  this.timeout(60_000)

  const render = async (set: readonly string[]): Promise<Rendered[]> => {
    const { helm } = await ensurePrograms(['helm'])
    const chart = join(repositoryRoot, 'charts/kcp')
    const values = set.flatMap((one) => ['--set', one])
    const { stdout } = await runCommand(helm, ['template', 'kcp', chart, '--kube-version', '1.34.3', ...values])
    return parseAllDocuments(stdout).flatMap((document) => (document.toJS() as Rendered | null) ?? [])
  }
  const path = '/etc/kcp/authentication'
  /** The volumes of the pods that get the file, after checks of flag and mount. */
  const volumesIn = (objects: readonly Rendered[]): unknown[] =>
    objects.flatMap(({ spec }) => {
      const { containers = [], volumes = [] } = spec?.template?.spec ?? {}
      const args = containers.flatMap(({ args = [] }) => args).filter((arg) => arg.includes('authentication'))
      const mounts = containers
        .flatMap(({ volumeMounts = [] }) => volumeMounts)
        .filter(({ mountPath }) => mountPath === path)
      if (args.length === 0 && mounts.length === 0) return []
      expect(args).to.deep.equal([`--authentication-config=${path}/authentication.yaml`])
      expect(mounts).to.deep.equal([{ name: 'authentication', mountPath: path, readOnly: true }])
      return volumes.filter(({ name }) => name === 'authentication')
    })
  const items = [{ key: 'authentication.yaml', path: 'authentication.yaml' }]
  const issuer = [
    'authentication.config.apiVersion=apiserver.config.k8s.io/v1',
    'authentication.config.kind=AuthenticationConfiguration',
    'authentication.config.jwt[0].issuer.url=https://login.example.com',
    'authentication.config.jwt[0].issuer.audiences[0]=kcp',
    'authentication.config.jwt[0].claimMappings.username.claim=sub',
    'authentication.config.jwt[0].claimMappings.username.prefix=oidc:',
  ]

  it('is off by default', async () => {
    const objects = await render([])
    expect(volumesIn(objects)).to.deep.equal([])
    expect(objects.filter(({ metadata }) => metadata.name === 'kcp-authentication')).to.deep.equal([])
  })

  for (const mode of ['host', 'embedded'])
    it(`writes the configuration into a ConfigMap that kcp accepts, storage.mode ${mode}`, async () => {
      const objects = await render([...issuer, `storage.mode=${mode}`])
      const [map] = objects.filter(
        ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'kcp-authentication',
      )
      const { issuers } = parseConfiguration(map?.data?.['authentication.yaml'] ?? '')
      expect(issuers.map(({ source }) => source.issuer.url)).to.deep.equal(['https://login.example.com'])
      expect(volumesIn(objects)).to.deep.equal([
        { name: 'authentication', configMap: { name: 'kcp-authentication', items } },
      ])
    })

  it('takes a ConfigMap or a Secret that exists', async () => {
    const configMap = { name: 'mine', items }
    expect(volumesIn(await render(['authentication.configMapName=mine']))).to.deep.equal([
      { name: 'authentication', configMap },
    ])
    const secret = { secretName: 'mine', items }
    expect(volumesIn(await render(['authentication.secretName=mine']))).to.deep.equal([
      { name: 'authentication', secret },
    ])
  })

  it('refuses two of them, and what is no AuthenticationConfiguration', async () => {
    const refused = (set: readonly string[]): Promise<string> => render(set).then(() => 'accepted', String)
    expect(await refused([...issuer, 'authentication.secretName=mine'])).to.include(
      'give one of config, configMapName and secretName',
    )
    expect(await refused(['authentication.config.kind=Config'])).to.include('AuthenticationConfiguration')
    expect(await refused(issuer.slice(2)), 'neither apiVersion nor kind').to.include('authentication')
  })
})
