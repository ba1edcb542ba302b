export * from './deep-readonly.ts'
export { createInformer, type Informer, type InformerOptions } from './informer.ts'
export * from './key.ts'
export type { Change, ChangeListener, ObjectCache } from './store.ts'
