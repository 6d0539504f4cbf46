// SPDX-License-Identifier: Apache-2.0
import { identity } from '../api';
import { useStore } from '../store';
import { Card, Empty, Heading } from '../ui';
import { PasswordForm } from './login';

const roles: Record<string, string> = {
  viewer: 'Reads everything, changes nothing.',
  operator: 'Reads everything, begins instances, sends events and resizes pools.',
  admin: 'Does everything, and manages users and tokens.',
};

export function AccountPage() {
  const known = useStore(identity);
  if (!known?.csrf) {
    return (
      <>
        <Heading title="Account" />
        <Empty icon="lock" title="Nobody is logged in">
          This server does not ask for a login.
        </Empty>
      </>
    );
  }
  return (
    <>
      <Heading title="Account" />
      <div class="narrow stack">
        <Card title={known.user}>
          <p>
            <span class="tag">{known.role}</span> {roles[known.role]}
          </p>
        </Card>
        <Card title="Change the password">
          <p class="quiet">Logins elsewhere end.</p>
          <PasswordForm user={known.user} button="Change the password" />
        </Card>
        <p class="quiet">
          The dashboard contains the work of others, under <a href="/licenses.txt">their licences</a>.
        </p>
      </div>
    </>
  );
}
