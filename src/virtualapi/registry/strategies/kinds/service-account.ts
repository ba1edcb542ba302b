// ServiceAccounts: of the Secrets they name, the name is kept.
import type { KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { KindRules } from '../kind-rules.ts'

export const serviceAccountRules: KindRules = { prepareForCreate: keepNames, prepareForUpdate: keepNames }

function keepNames(object: KubeObject): void {
  const secrets = (object['secrets'] ?? []) as readonly { name?: string }[]
  if (secrets.length > 0) object['secrets'] = secrets.map(({ name }) => (name === undefined ? {} : { name }))
}
