// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { at, call, get, identity } from '../api';
import { Icon } from '../icons';
import { useResource } from '../live';
import type { Role, User } from '../types';
import { Ago, Card, Dialog, Field, Heading, Refusal, Select, Skeleton, useAction } from '../ui';

const roles: Role[] = ['viewer', 'operator', 'admin'];

function UserForm({ known, onDone }: { known: User | undefined; onDone(): void }) {
  const [name, setName] = useState(known?.user ?? '');
  const [role, setRole] = useState<string>(known?.role ?? 'viewer');
  const [password, setPassword] = useState('');
  const save = useAction(async () => {
    await call('PUT', `/v1/users${at(name)}`, password ? { role, password } : { role });
    onDone();
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.start();
      }}
    >
      {save.problem && <Refusal problem={save.problem} />}
      <Field label="Name">
        <input name="name" required autoFocus={!known} readOnly={known !== undefined} spellcheck={false} autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </Field>
      <Field label="Role">
        <Select label="Role" value={role} options={roles} onChange={setRole} />
      </Field>
      <Field label={known ? 'New password' : 'First password'} hint={known ? 'Leave empty to keep the current password. A new password must be changed at the first login.' : 'At least 12 bytes. It must be changed at the first login.'}>
        <input name="password" type="password" autocomplete="new-password" required={!known} minLength={12} value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
      </Field>
      <div class="form-end">
        <button type="button" onClick={onDone}>
          Cancel
        </button>
        <button class="primary" disabled={save.busy}>
          {known ? 'Save' : 'Add the user'}
        </button>
      </div>
    </form>
  );
}

export function UsersPage() {
  const page = useResource<{ users: User[] }>('users', (signal) => get('/v1/users', signal));
  const [edited, setEdited] = useState<User | 'new'>();
  const [removed, setRemoved] = useState<User>();
  const remove = useAction(async (user: string) => {
    await call('DELETE', `/v1/users${at(user)}`);
    setRemoved(undefined);
    page.reload();
  });
  const done = () => {
    setEdited(undefined);
    page.reload();
  };
  return (
    <>
      <Heading title="Users">
        <button type="button" class="primary" onClick={() => setEdited('new')}>
          <Icon name="plus" />
          New user
        </button>
      </Heading>
      <Card flush>
        {page.error && <Refusal problem={page.error} />}
        {!page.data && !page.error && <Skeleton lines={4} />}
        {page.data && (
          <div class="table-place">
            <table>
              <thead>
                <tr>
                  <th>User</th>
                  <th>Role</th>
                  <th class="spare">Changed</th>
                  <th class="end">
                    <span class="sr">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {page.data.users.map((user) => (
                  <tr key={user.user}>
                    <td>
                      <strong>{user.user}</strong> {user.one_time && <span class="tag">one-time password</span>}
                    </td>
                    <td>{user.role}</td>
                    <td class="quiet spare">
                      <Ago time={user.at} />
                    </td>
                    <td class="end">
                      <button type="button" class="plain" onClick={() => setEdited(user)}>
                        Edit
                      </button>
                      {user.user !== identity.get()?.user && (
                        <button type="button" class="plain danger" onClick={() => setRemoved(user)}>
                          Remove
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Card>
      <Dialog title={edited === 'new' ? 'New user' : `Edit ${edited?.user ?? ''}`} open={edited !== undefined} onClose={() => setEdited(undefined)}>
        <UserForm known={edited === 'new' ? undefined : edited} onDone={done} />
      </Dialog>
      <Dialog title={`Remove ${removed?.user ?? ''}?`} open={removed !== undefined} onClose={() => setRemoved(undefined)}>
        <p>The user is logged out everywhere and cannot log in again.</p>
        {remove.problem && <Refusal problem={remove.problem} />}
        <div class="form-end">
          <button type="button" onClick={() => setRemoved(undefined)}>
            Keep
          </button>
          <button type="button" class="primary danger" disabled={remove.busy} onClick={() => removed && remove.start(removed.user)}>
            Remove
          </button>
        </div>
      </Dialog>
    </>
  );
}
