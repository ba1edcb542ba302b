// The admission policies of a logical cluster with their bindings, as they are stored now.
import type { V1ValidatingAdmissionPolicyBindingSpec, V1ValidatingAdmissionPolicySpec } from '@kubernetes/client-node'
import type { ClusterObjects, Entry } from '../../store/hub/index.ts'
import { decodeObject } from '../resources/object-bytes.ts'
import type { Data } from '../resources/typed/data.ts'
import { compilePolicy, type CompiledPolicy } from './compile-policy.ts'
import { compileMatch, type ResourceMatch } from './match-resources.ts'

const policyKey = 'validatingadmissionpolicies.admissionregistration.k8s.io'
const bindingKey = 'validatingadmissionpolicybindings.admissionregistration.k8s.io'

export interface Binding {
  readonly name: string
  readonly spec: Data<V1ValidatingAdmissionPolicyBindingSpec>
  /** Undefined where the binding does not narrow the policy. */
  readonly match: ResourceMatch | undefined
}

export interface BoundPolicy {
  readonly name: string
  readonly policy: CompiledPolicy
  readonly bindings: readonly Binding[]
}

interface Index {
  readonly changes: readonly [number, number]
  readonly policies: readonly BoundPolicy[]
}

const indexes = new WeakMap<ClusterObjects, Index>()
const compiledPolicies = new WeakMap<Entry, CompiledPolicy>()
const compiledBindings = new WeakMap<Entry, Binding>()
const none: readonly BoundPolicy[] = []

/** The policies that have a binding, in the order of names. It is computed again when one of them changes. */
export function boundPolicies(objects: ClusterObjects): readonly BoundPolicy[] {
  const changes = [objects.changes(policyKey), objects.changes(bindingKey)] as const
  const known = indexes.get(objects)
  if (known?.changes[0] === changes[0] && known.changes[1] === changes[1]) return known.policies
  const policies = readPolicies(objects)
  indexes.set(objects, { changes, policies })
  return policies
}

function readPolicies(objects: ClusterObjects): readonly BoundPolicy[] {
  const entries = objects.list({ resource: policyKey })
  if (entries.length === 0) return none
  const bindings = Map.groupBy(objects.list({ resource: bindingKey }).map(bindingOf), ({ spec }) => spec.policyName)
  return entries.flatMap((entry) => {
    const { name } = entry.key
    const own = bindings.get(name)
    return own === undefined ? [] : [{ name, policy: policyOf(entry), bindings: own }]
  })
}

function policyOf(entry: Entry): CompiledPolicy {
  let policy = compiledPolicies.get(entry)
  if (policy === undefined) {
    policy = compilePolicy(decodeObject(entry.bytes)['spec'] as Data<V1ValidatingAdmissionPolicySpec>)
    compiledPolicies.set(entry, policy)
  }
  return policy
}

function bindingOf(entry: Entry): Binding {
  let binding = compiledBindings.get(entry)
  if (binding === undefined) {
    const spec = decodeObject(entry.bytes)['spec'] as Binding['spec']
    const { matchResources } = spec
    binding = { name: entry.key.name, spec, match: matchResources && compileMatch(matchResources) }
    compiledBindings.set(entry, binding)
  }
  return binding
}
