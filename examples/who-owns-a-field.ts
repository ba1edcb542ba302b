// Applies two configurations to one object, as server-side apply does, and shows the owners of its fields:
//   node examples/who-owns-a-field.ts
import { applyConfiguration, fieldTypeOfKind, type FieldWrite } from 'kcp/managed-fields'

const type = fieldTypeOfKind({
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { replicas: { type: 'integer' }, image: { type: 'string' } } },
  },
})
const identity = { apiVersion: 'example.com/v1', kind: 'App', metadata: { name: 'web' } }
const by = (manager: string): FieldWrite => ({
  apiVersion: identity.apiVersion,
  kind: identity.kind,
  subresource: '',
  manager,
  now: '2026-01-01T00:00:00Z',
  type,
  empty: {},
  validate: true,
  context: { convert: (object) => object },
})
type Applied = ReturnType<typeof applyConfiguration>
const merged = ({ object, managedFields }: Applied): Applied['object'] => ({
  ...object,
  metadata: { ...object.metadata, ...(managedFields && { managedFields }) },
})

const team = { ...identity, spec: { replicas: 2, image: 'web:1' } }
const first = merged(applyConfiguration(undefined, team, by('team'), { force: false }))
try {
  applyConfiguration(first, { ...identity, spec: { replicas: 5 } }, by('autoscaler'), { force: false })
} catch (error) {
  console.log(error instanceof Error ? error.message : error)
}
const second = applyConfiguration(first, { ...identity, spec: { replicas: 5 } }, by('autoscaler'), { force: true })
for (const { manager, fieldsV1 } of second.managedFields ?? []) console.log(`${manager}: ${JSON.stringify(fieldsV1)}`)
