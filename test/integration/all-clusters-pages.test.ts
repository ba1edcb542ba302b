// Pages of a list over all logical clusters: all of them show one state, or the client is told to begin anew.
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

interface Page {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string }
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
}

describe('a list over all logical clusters in pages', function () {
  this.timeout(60_000)
  let instance: KcpInstance
  let tenants: Tenant[]

  before(async () => {
    instance = await startInstance()
    tenants = [await instance.tenant('acme'), await instance.tenant('bob')]
    for (const { kubectl } of tenants)
      for (const name of ['a', 'b']) {
        await kubectl(['create', 'configmap', name])
        await kubectl(['label', 'configmap', name, 'paged=yes'])
      }
  })
  after(async () => {
    await instance[Symbol.asyncDispose]()
  })

  const path = '/clusters/*/api/v1/configmaps?labelSelector=paged%3Dyes'
  const ask = async (query: string): Promise<{ status: number; page: Page; reason: unknown }> => {
    const { status, json } = await instance.admin.http.request('GET', `${path}${query}`)
    const body = json()
    return { status, page: body as unknown as Page, reason: body['reason'] }
  }
  const next = (page: Page): string => `&limit=2&continue=${encodeURIComponent(page.metadata.continue ?? '')}`
  const namesOf = ({ items }: Page): string[] => items.map(({ metadata }) => metadata.name)

  it('is complete while no object of the kind changes, even if others do', async () => {
    const first = await ask('&limit=2')
    await tenants[0]?.kubectl(['create', 'secret', 'generic', 'other'])
    const second = await ask(next(first.page))
    expect([...namesOf(first.page), ...namesOf(second.page)].sort()).to.deep.equal(['a', 'a', 'b', 'b'])
    expect(second.page.metadata).to.include({ resourceVersion: first.page.metadata.resourceVersion })
    expect(second.page.metadata.continue).to.equal(undefined)
  })

  it('lists written objects alone for storedOnly, in pages too, and the base layer as well without it', async () => {
    const namesAt = async (query: string): Promise<string[]> => {
      const names: string[] = []
      for (let token = ''; ;) {
        const { status, json } = await instance.admin.http.request(
          'GET',
          `/clusters/*/api/v1/configmaps?limit=1${query}${token}`,
        )
        expect(status).to.equal(200)
        const page = json() as unknown as Page
        names.push(...namesOf(page))
        if (page.metadata.continue === undefined) return names
        token = `&continue=${encodeURIComponent(page.metadata.continue)}`
      }
    }
    const written = (await namesAt('&storedOnly=true')).filter((name) => name !== 'kube-root-ca.crt')
    expect(written).to.deep.equal(['a', 'b', 'a', 'b'])
    expect(await namesAt('')).to.include('kube-root-ca.crt')
    const { json } = await instance.admin.http.request('GET', '/clusters/*/api/v1/serviceaccounts?storedOnly=true')
    expect((json() as unknown as Page).items).to.deep.equal([])
  })

  it('shows the state of its first page, also of an object that was deleted since', async () => {
    const first = await ask('&limit=2')
    for (const { kubectl } of tenants) await kubectl(['delete', 'configmap', 'b'])
    const second = await ask(next(first.page))
    expect([...namesOf(first.page), ...namesOf(second.page)]).to.deep.equal(['a', 'b', 'a', 'b'])
    expect(second.page.metadata).to.include({ resourceVersion: first.page.metadata.resourceVersion })
    // What was kept for a page is not kept any longer once that page was answered, and the state is not known
    // otherwise.
    expect(await ask(next(first.page))).to.include({ status: 410, reason: 'Expired' })
    const exact = `&resourceVersion=${first.page.metadata.resourceVersion}&resourceVersionMatch=Exact`
    expect(await ask(exact)).to.include({ status: 410, reason: 'Expired' })
    expect(namesOf((await ask('')).page)).to.deep.equal(['a', 'a'])
  })

  it('lacks what was in a logical cluster that was deleted since', async () => {
    const { admin } = instance
    const gone = await instance.tenant('gone')
    await gone.kubectl(['create', 'configmap', 'a'])
    await gone.kubectl(['label', 'configmap', 'a', 'paged=yes'])
    const first = await ask('&limit=1')
    await admin.kubectl(['delete', 'logicalclusters.kcp.dev', 'gone', '--wait=true', '--timeout=40s'])
    const names = [...namesOf(first.page)]
    for (let page = first.page; page.metadata.continue !== undefined;) {
      page = (await ask(next(page))).page
      expect(JSON.stringify(page)).not.to.contain('"kcp.dev/logical-cluster":""')
      names.push(...namesOf(page))
    }
    expect(names.length).to.be.within(2, 3)
  })

  it('is 410 after a restart, because earlier deletions are no longer known', async () => {
    const first = await ask('&limit=1')
    await tenants[0]?.kubectl(['create', 'configmap', 'c'])
    await instance.process.kill()
    await instance.process.start()
    expect(await ask(next(first.page))).to.include({ status: 410, reason: 'Expired' })
  })
})
