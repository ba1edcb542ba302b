export * from './measured-store.ts'
