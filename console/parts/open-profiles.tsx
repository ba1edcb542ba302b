// The ClusterProfiles that give others a way in, and who may go it.
import type { JSX } from 'preact'
import { ApiError, requestJson } from '#console/kube/request.ts'
import { consumersOf, targetOfProfile, type Binding, type Role } from '#console/model/consumers.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { useLoaded } from '#console/state/load.ts'
import { text } from '#console/text.ts'
import { Notice, Plain } from './common.tsx'

interface Profile {
  readonly metadata: { readonly name: string }
  readonly status?: { readonly accessProviders?: readonly unknown[] }
}

interface List<T> {
  readonly items: readonly T[]
}

interface Open {
  readonly profile: string
  readonly consumers: readonly string[]
}

const t = text.members
const versions = ['v1alpha2', 'v1alpha1'] as const
const againMs = 15_000
/** Profiles, roles and bindings that are read, and consumers that are shown of a profile. */
const [maxRead, maxShown] = [500, 20]

/** Nothing where there are no profiles; `only`: the profile of one member. */
export function OpenProfiles({ home, only }: { readonly home: string; readonly only?: string }): JSX.Element | null {
  const loaded = useLoaded((signal) => openProfiles(home, signal), [home], againMs)
  const { value, error } = loaded.value
  if (error !== undefined) return <Notice kind="bad">{visibleText(error)}</Notice>
  const shown = value?.filter(({ profile }) => only === undefined || profile === only)
  if (shown === undefined || (shown.length === 0 && value?.length === 0)) return null
  return (
    <article class="card">
      <h2>{t.openProfiles}</h2>
      {shown.length === 0 ? <p>{t.notOpen}</p> : null}
      {shown.length === 0 ? null : (
        <table class="plain">
          <thead>
            <tr>
              <th>{t.profile}</th>
              <th>{t.openTo}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ profile, consumers }) => (
              <tr key={profile}>
                <td>
                  <Plain>{profile}</Plain>
                </td>
                <td>
                  <Plain>{consumers.length === 0 ? t.nobody : consumersText(consumers)}</Plain>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </article>
  )
}

function consumersText(consumers: readonly string[]): string {
  const more = consumers.length - maxShown
  return consumers.slice(0, maxShown).join(', ') + (more > 0 ? `, ${t.moreConsumers(more)}` : '')
}

async function openProfiles(home: string, signal: AbortSignal): Promise<Open[]> {
  const profiles = (await profilesIn(home, signal)).filter(({ status }) => (status?.accessProviders ?? []).length > 0)
  if (profiles.length === 0) return []
  const rbac = <T,>(resource: string): Promise<List<T>> =>
    requestJson<List<T>>(`${home}/apis/rbac.authorization.k8s.io/v1/${resource}`, { query, signal })
  const [roles, bindings] = await Promise.all([rbac<Role>('clusterroles'), rbac<Binding>('clusterrolebindings')])
  const rights = { roles: roles.items, bindings: bindings.items }
  return profiles.map(({ metadata: { name } }) => ({
    profile: name,
    consumers: consumersOf(targetOfProfile(name), rights),
  }))
}

const query = { limit: String(maxRead) }

/** In the newest version that is served. */
async function profilesIn(home: string, signal: AbortSignal): Promise<readonly Profile[]> {
  const labelSelector = 'x-k8s.io/cluster-manager=kcp'
  for (const version of versions) {
    const path = `${home}/apis/multicluster.x-k8s.io/${version}/namespaces/kcp-system/clusterprofiles`
    try {
      return (await requestJson<List<Profile>>(path, { query: { ...query, labelSelector }, signal })).items
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
    }
  }
  return []
}
