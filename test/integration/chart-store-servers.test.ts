// What the chart makes of the values of an etcd or a PostgreSQL with the logical clusters.
import { expect } from 'chai'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { ensurePrograms, repositoryRoot, runCommand, runKcp } from '#test/support/index.ts'

interface PodSpec {
  readonly containers: readonly { readonly args?: readonly string[]; readonly volumeMounts?: readonly unknown[] }[]
  readonly volumes: readonly { readonly name: string }[]
}
type Rendered = KubeObject & { readonly spec?: { readonly template?: { readonly spec: PodSpec } } }

describe('a server for the logical clusters with the chart', function () {
  this.timeout(60_000)

  const template = async (set: readonly string[], expectCode: number | 'any' = 0) => {
    const { helm } = await ensurePrograms(['helm'])
    const values = set.flatMap((one) => ['--set', one])
    const args = ['template', 'kcp', join(repositoryRoot, 'charts/kcp'), '--kube-version', '1.34.3', ...values]
    return await runCommand(helm, args, { expectCode })
  }
  const apiserver = async (set: readonly string[]): Promise<PodSpec> => {
    const objects = parseAllDocuments((await template(set)).stdout).map(
      (document) => document.toJS() as Rendered | null,
    )
    const found = objects.find((one) => one?.kind === 'Deployment' && one.metadata.name === 'kcp-apiserver')
    if (found?.spec?.template === undefined) throw new Error('the chart has no Deployment kcp-apiserver')
    return found.spec.template.spec
  }
  const servers = 'storage.etcd.servers={https://a:2379,https://b:2379}'
  const argsOf = ({ containers }: PodSpec): readonly string[] =>
    (containers[0]?.args ?? []).filter((arg) => /^--(store|etcd-)/.test(arg))

  it('is not used by default', async () => {
    const pod = await apiserver([])
    expect(argsOf(pod)).to.deep.equal([])
    expect(JSON.stringify(pod)).to.not.contain('/etc/kcp/etcd')
  })

  it('is reached with the client certificate or the user of a Secret, by flags that kcp has', async () => {
    const pod = await apiserver([servers, 'storage.etcd.secretName=etcd-client', 'storage.etcd.user=kcp'])
    const dir = '/etc/kcp/etcd'
    const args = argsOf(pod)
    expect(args).to.deep.equal([
      ...['--store=etcd', '--etcd-servers=https://a:2379,https://b:2379', '--etcd-prefix=/kcp'],
      ...['--etcd-compaction-interval=300', `--etcd-cafile=${dir}/ca.crt`, `--etcd-certfile=${dir}/tls.crt`],
      ...[`--etcd-keyfile=${dir}/tls.key`, '--etcd-user=kcp', `--etcd-password-file=${dir}/password`],
    ])
    expect(pod.containers[0]?.volumeMounts).to.deep.include({ name: 'etcd', mountPath: dir, readOnly: true })
    expect(pod.volumes.find(({ name }) => name === 'etcd')).to.have.nested.property('secret.secretName', 'etcd-client')
    const { stdout } = await runKcp(['apiserver', '--help'])
    for (const arg of args) expect(stdout).to.contain(arg.slice(0, arg.indexOf('=')))
    const plain = argsOf(
      await apiserver([servers, 'storage.etcd.secretName=ca', 'storage.etcd.clientCertificate=false']),
    )
    expect(plain).to.include(`--etcd-cafile=${dir}/ca.crt`).and.not.include(`--etcd-certfile=${dir}/tls.crt`)
  })

  it('may be a PostgreSQL, reached with the password and certificates of a Secret, by flags that kcp has', async () => {
    const set = ['servers={a:5432,b}', 'secretName=db', 'ca=true', 'clientCertificate=true']
    const pod = await apiserver(set.map((one) => `storage.postgres.${one}`))
    const dir = '/etc/kcp/postgres'
    const args = (pod.containers[0]?.args ?? []).filter((arg) => /^--(store|postgres-)/.test(arg))
    expect(args).to.deep.equal([
      ...['--store=postgres', '--postgres-servers=a:5432,b', '--postgres-database=kcp', '--postgres-schema=kcp'],
      ...['--postgres-user=kcp', '--postgres-history=300', `--postgres-password-file=${dir}/password`],
      ...[`--postgres-cafile=${dir}/ca.crt`, `--postgres-certfile=${dir}/tls.crt`, `--postgres-keyfile=${dir}/tls.key`],
    ])
    expect(pod.containers[0]?.volumeMounts).to.deep.include({ name: 'postgres', mountPath: dir, readOnly: true })
    expect(pod.volumes.find(({ name }) => name === 'postgres')).to.have.nested.property('secret.secretName', 'db')
    const { stdout } = await runKcp(['apiserver', '--help'])
    for (const arg of args) expect(stdout).to.contain(arg.slice(0, arg.indexOf('=')))
    const refusal = async (more: string): Promise<string> =>
      (await template(['storage.postgres.servers={a:5432}', more], 'any')).stderr
    expect(await refusal('storage.mode=embedded')).to.contain('storage.postgres needs storage.mode host')
    expect(await refusal(servers)).to.contain('cannot both have servers')
    expect(await refusal('storage.postgres.ca=true')).to.contain('need storage.postgres.secretName')
    expect(await refusal('storage.postgres.user=')).to.match(/minLength/)
  })

  it('is refused with an embedded store, and a user without a password', async () => {
    const embedded = await template([servers, 'storage.mode=embedded'], 'any')
    expect(embedded.stderr).to.contain('storage.etcd needs storage.mode host')
    expect((await template([servers, 'storage.etcd.user=kcp'], 'any')).stderr).to.contain('a Secret with key password')
    expect((await template(['storage.etcd.servers={a:2379}'], 'any')).stderr).to.match(/pattern/)
  })
})
