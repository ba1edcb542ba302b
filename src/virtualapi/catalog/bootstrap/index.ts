export * from './base-layer.ts'
export * from './bootstrap-objects.ts'
